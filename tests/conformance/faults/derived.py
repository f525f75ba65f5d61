"""Applications in a chain: the second reads what the first commits. And a process that kills them at every touch of a file.

`python -m tests.conformance.faults.derived SOURCE FOLDER STRIDE`; prints one line of JSON. See crash.py.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dagflow import DAG
from dagflow.ledger import Ledger, read_dataset
from dagflow.runtime.run_report import RunReport
from dagflow.testing import run_dag
from operators import BlockReader, DatasetInput, FileSplitterInput, Filter, Map, RecordWriter
from tests.chaos import dying
from tests.conformance.apps import Populate, is_kept, left_over, lines_in
from tests.conformance.faults.crash import kill_at_touch

OPTIONS: dict[str, Any] = {"windows_in_flight": 2}


def first(source: Path, output: Path | str, **splitter: Any) -> Populate:
    """Files → lines that do not begin with a dot."""
    splitter = {"block_size": 5, "blocks_threshold": 3, "event_time": "modified", **splitter}

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], **splitter))
        lines = dag.add_operator("lines", BlockReader())
        keep = dag.add_operator("keep", Filter(is_kept))
        out = dag.add_operator("out", RecordWriter(str(output)))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("all lines", lines.messages, keep.input)
        dag.add_stream("kept", keep.output, out.input)

    return populate_dag


def shouted(line: Any) -> str:
    return str(line.record).upper()


def second(inputs: Mapping[str, Path | str], output: Path | str, **given: Any) -> Populate:
    """Datasets → lines in capitals, into one dataset."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        for name, folder in inputs.items():
            dataset = dag.add_operator(name, DatasetInput(folder, **{"window_bytes": 6, **given}))
            lines = dag.add_operator(f"{name}_lines", BlockReader())
            shout = dag.add_operator(f"{name}_shout", Map(shouted))
            out = dag.add_operator(f"{name}_out", RecordWriter(str(output)))
            dag.add_stream(f"{name} blocks", dataset.blocks_metadata_output, lines.blocks_metadata_input)
            dag.add_stream(f"{name} text", lines.messages, shout.input)
            dag.add_stream(f"{name} shouted", shout.output, out.input)

    return populate_dag


def run_first(folder: Path, source: Path) -> RunReport:
    return run_dag(first(source, folder / "first"), **OPTIONS)


def run_second(folder: Path) -> RunReport:
    return run_dag(second({"lines": folder / "first"}, folder / "second"), **OPTIONS)


def in_child(work: Callable[[], Any], folder: Path, kill_at: int | None = None) -> int:
    """Run in a child, which is killed at its touch number `kill_at` of a folder. Return its exit status."""

    def killed() -> None:
        if kill_at is not None:
            kill_at_touch(str(folder), kill_at)
        work()

    return dying.in_child(killed)


def ledger(folder: Path) -> Ledger:
    return Ledger.open(str(folder))


def problems(folder: Path, *inputs: Path) -> list[str]:
    """Return the problems that verify finds in a dataset and in its entries on its inputs."""
    readers = {ledger(each).seed().dataset_id: ledger(each) for each in inputs}
    return [str(problem) for problem in ledger(folder).verify(inputs=readers).problems]


def values(folder: Path) -> Counter[bytes]:
    """The rows of a dataset, as its ledger has them."""
    return Counter(each.encode() for each in read_dataset(str(folder)).to_table().column("value").to_pylist())


def heads(folder: Path) -> list[str]:
    return [str(ledger(folder / name).head()) for name in ("first", "second")]


def wrong(folder: Path, expected: Counter[bytes]) -> list[str]:
    """Return the differences from an undisturbed run: rows of both datasets, their ledgers, and what is left behind."""
    found = problems(folder / "first") + problems(folder / "second", folder / "first")
    capitals = Counter({line.upper(): n for line, n in expected.items()})
    for name, want in (("first", expected), ("second", capitals)):
        for what, have in (("files", lines_in(folder / name)), ("rows", values(folder / name))):
            if have != want:
                found.append(f"{name}: {what}: {dict(have - want)} too many, {dict(want - have)} missing")
        if left_over(folder / name):
            found.append(f"{name}: {[path.name for path in left_over(folder / name)]} left over")
    ends, taken = ledger(folder / "first").resume(), next(iter(ledger(folder / "second").resume().inputs.values()))
    if (taken.prev_block, taken.prev_offset, taken.watermark) != (ends.at, ends.last_offset, ends.watermark):
        found.append(f"the second stands at {taken}, the first at {ends}")
    if ledger(folder / "second").resume().watermark != ends.watermark:
        found.append(f"the second's watermark is {ledger(folder / 'second').resume().watermark}, the first's {ends.watermark}")
    return found


def case(folder: Path, source: Path, expected: Counter[bytes], *kills: int) -> tuple[bool, list[str]]:
    """Kills the chain at these touches, one launch after the other, then lets it run to its end, and once more."""

    def chain() -> None:
        run_first(folder, source)
        run_second(folder)

    was_killed = [in_child(chain, folder, kill_at) == -signal.SIGKILL for kill_at in kills]
    if ledger(folder / "first").head() is not None:
        in_child(lambda: run_second(folder), folder)  # reads what is committed so far
    if in_child(chain, folder) != 0:
        return any(was_killed), [f"the launch after {kills} failed"]
    found = wrong(folder, expected)
    before = heads(folder)
    if in_child(chain, folder) != 0 or heads(folder) != before:
        found.append(f"a further launch added to the ledgers: {before} → {heads(folder)}")
    return any(was_killed), [f"after {kills}: {each}" for each in found]


def main(source: Path, folder: Path, stride: int) -> dict[str, Any]:
    run_first(folder / "reference", source)  # here, so that the children find everything imported
    run_second(folder / "reference")
    expected = lines_in(folder / "reference" / "first")
    found = wrong(folder / "reference", expected)
    cases = 0
    for touch in itertools.count(stride // 2, stride):
        killed, more = case(folder / f"at{touch}", source, expected, touch)
        found += more
        if not killed:
            break
        cases += 1
        if touch % 3 == 0:  # and again, while the next launch picks up the pieces
            found += case(folder / f"thrice{touch}", source, expected, touch, touch // 2, 7)[1]
    return {"cases": cases, "lines": sum(expected.values()), "wrong": found}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
