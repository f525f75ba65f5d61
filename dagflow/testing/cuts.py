"""The law of windows as a test: results of an application do not depend on how its input is cut."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from dagflow.launching.build import examine
from dagflow.ledger import read_dataset
from dagflow.planning.errors import ScopeNotWritten
from dagflow.planning.plan import Plan
from dagflow.planning.scopes import WINDOW, covered
from dagflow.testing.dags import run_dag

HOME = "{home}"
MAX_SHOWN = 5
CHANGE_TYPE = "_change_type"
Tables = Mapping[str, "Counter[str]"]


@attrs.frozen(kw_only=True)
class Cut:
    """One way to cut an input.

    Attributes:
        launches: the names of the files that are new in each launch.
        block_size: bytes of a block; None: the default.
        blocks_threshold: blocks of a window; None: no limit.
        slots: processes that work at once.
    """

    launches: tuple[tuple[str, ...], ...]
    block_size: int | None = None
    blocks_threshold: int | None = None
    slots: int = 1

    @classmethod
    def at_random(cls, names: list[str], largest: int, source: random.Random) -> Cut:
        """Return a random cut of files, of which the largest has so many bytes."""
        shuffled = source.sample(names, len(names))
        stops = sorted(source.choices(range(len(names) + 1), k=source.choice([0, 0, 1, 2])))
        bounds = [0, *stops, len(names)]
        return cls(
            launches=tuple(tuple(shuffled[a:b]) for a, b in itertools.pairwise(bounds) if a < b),
            block_size=max(1, round(2 ** source.uniform(3, max(4, largest.bit_length())))),
            blocks_threshold=source.choice([None, 1, 2, 5]),
            slots=source.choice([1, 1, 1, 2]),
        )

    def __str__(self) -> str:
        """Return the cut in words."""
        launches = " then ".join(", ".join(names) for names in self.launches)
        return f"block_size={self.block_size}, blocks_threshold={self.blocks_threshold}, slots={self.slots}, files: {launches}"


def check_cuts(
    populate_dag: Any,
    settings: Mapping[str, Any],
    files: Mapping[str, str | bytes],
    *,
    read: Callable[[Path], Mapping[str, Any]] | None = None,
    cuts: int = 20,
    seed: int = 0,
    runner: str = "local",
) -> None:
    r"""Check that an application's tables do not depend on how its input is cut into blocks, windows and launches.

    The application is launched once over all files, in blocks and windows of the default size. Then it is launched again over
    random cuts of the same files, each in a folder of its own, and its tables are compared, whatever the order of their rows. The
    changes of a changelog are added up. A launch that is refused because it would compute a part of the result (DF058) is not
    wrong, and is passed over.

    Args:
        populate_dag: the function that fills the DAG, or what the command line would name.
        settings: keys as for `-D`. `{home}` in a value stands for the folder that holds the files and the outputs.
        files: the content of each input file, by its path below `{home}`.
        read: returns further tables (`pyarrow.Table`) by name, given the folder: of databases, for example. All datasets of files
            below the folder are compared anyway.
        cuts: the number of random cuts.
        seed: of the random numbers.
        runner: `local` or `spark`.

    Raises AssertionError with the cut and the rows that differ, and what the launches raise.

    >>> from dagflow.testing import check_cuts
    >>> from operators import CsvFormat, CsvWriter, Deduplicate, FileSplitterInput, ScanReader
    >>> def populate_dag(dag, conf):
    ...     found = dag.add_operator("files", FileSplitterInput(conf["input"]))
    ...     rows = dag.add_operator("rows", ScanReader(CsvFormat()))
    ...     first = dag.add_operator("first", Deduplicate())
    ...     writer = dag.add_operator("writer", CsvWriter(conf["output"]))
    ...     dag.add_stream("blocks", found.blocks_metadata_output, rows.blocks_metadata_input)
    ...     dag.add_stream("all", rows.batches, first.input)
    ...     dag.add_stream("kept", first.output, writer.input)
    >>> files = {"in/a.csv": "id\n1\n2\n", "in/b.csv": "id\n2\n3\n"}
    >>> check_cuts(populate_dag, {"input": "{home}/in", "output": "{home}/out"}, files, cuts=2)
    """
    names, source = sorted(files), random.Random(seed)
    largest = max((len(content) for content in files.values()), default=1)
    trial = _Trial(populate_dag, settings, files, read, runner)
    expected = trial.tables(Cut(launches=(tuple(names),)))
    if not expected:
        raise AssertionError(
            "there is nothing to compare: the application has written no dataset of files below {home}\n  help: let its outputs "
            "be below {home}; of tables elsewhere, give read=…, a function that returns them by name"
        )
    for _ in range(cuts):
        cut = Cut.at_random(names, largest, source)
        try:
            tables = trial.tables(cut)
        except ScopeNotWritten:
            if len(cut.launches) == 1:
                raise
            continue
        if differing := list(_differences(expected, tables)):
            raise AssertionError("\n".join([f"the results depend on the cut: {cut}", *differing, *trial.suspects()]))


@attrs.define
class _Trial:
    """An application with its input, launched over one cut after the other, each in a folder of its own."""

    populate_dag: Any
    settings: Mapping[str, Any]
    files: Mapping[str, str | bytes]
    read: Callable[[Path], Mapping[str, Any]] | None
    runner: str
    plan: Plan | None = None

    def tables(self, cut: Cut) -> Tables:
        """Launch the application over one cut, and return its tables: how often each row is there."""
        with tempfile.TemporaryDirectory(prefix="dagflow-cuts-") as folder:
            home = Path(folder)
            for name in self.files:
                (home / name).parent.mkdir(parents=True, exist_ok=True)
            keys = {key: _placed(value, folder) for key, value in self.settings.items()}
            for launch in cut.launches:
                for name in launch:
                    content = self.files[name]
                    (home / name).write_bytes(content if isinstance(content, bytes) else content.encode())
                run_dag(self.populate_dag, {**keys, **self._limits(keys, cut)}, runner=self.runner, slots=cut.slots)
            tables = {**_datasets(home), **(self.read(home) if self.read is not None else {})}
            return {name: _counted(table.to_pylist()) for name, table in tables.items()}

    def _limits(self, settings: Mapping[str, Any], cut: Cut) -> dict[str, Any]:
        """Return the settings that cut the input so: of all operators that have them."""
        if self.plan is None:
            _, self.plan, problems = examine(self.populate_dag, code=settings, environment=os.environ)
            if self.plan is None:
                raise problems[0]
        limits = {"block_size": cut.block_size, "blocks_threshold": cut.blocks_threshold}
        return {
            f"operator.{name}.{field.name}": limits[field.name]
            for name, node in self.plan.dag.nodes.items()
            for field in attrs.fields(type(node.operator))
            if limits.get(field.name) is not None
        }

    def suspects(self) -> Iterator[str]:
        """Yield a line for each operator whose results depend on windows because its author wants that."""
        if self.plan is None:
            return
        for node in self.plan.written.nodes.values():
            if covered(self.plan.written, node) == WINDOW:
                yield f"  operator {node.name!r} ({node.where}) has scope window: its results cover the input of a window"


def _placed(value: Any, home: str) -> Any:
    if isinstance(value, list | tuple):
        return [_placed(each, home) for each in value]
    return value.replace(HOME, home) if isinstance(value, str) else value


def _counted(rows: list[dict[str, Any]]) -> Counter[str]:
    """Return how often each row is there; of a changelog, how often its changes have left it there."""
    counts = Counter[str]()
    for row in rows:
        sign = -1 if row.pop(CHANGE_TYPE, None) in ("delete", "update_preimage") else 1
        counts[repr(row)] += sign
    return Counter({row: count for row, count in counts.items() if count})


def _datasets(home: Path) -> dict[str, Any]:
    """Return the rows of all datasets below a folder."""
    folders = sorted(path.parents[1] for path in home.rglob("_dagflow/ledger"))
    return {str(folder.relative_to(home)): read_dataset(str(folder)).to_table() for folder in folders}


def _differences(expected: Tables, tables: Tables) -> Iterator[str]:
    for name in sorted({*expected, *tables}):
        want, got = expected.get(name, Counter()), tables.get(name, Counter())
        for what, rows in (("missing", want - got), ("too many", got - want)):
            for row, count in sorted(rows.items())[:MAX_SHOWN]:
                yield f"  {name}: {what} {count} times {row}"
            if len(rows) > MAX_SHOWN:
                yield f"  {name}: {what} {len(rows) - MAX_SHOWN} more rows"
