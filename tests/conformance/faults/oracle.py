"""The promises that hold after every fault: launch until nothing is left to do, and look at everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dagflow.ledger import Ledger, fold, read_dataset
from tests.conformance.apps import left_over


def rows_of(folder: Path) -> Counter[str]:
    """The rows of a dataset, as its ledger has them."""
    return Counter(read_dataset(str(folder)).to_table().column("value").to_pylist())


def wrong(
    expected: Mapping[Path, Iterable[str]], launch: Callable[[], Any], inputs: Mapping[Path, list[Path]] | None = None
) -> list[str]:
    """Return the differences from an undisturbed run; `launch` is called twice. Letters are those of the fault cases.

    `expected`: the rows of each dataset; `inputs`: the datasets that a dataset is derived from.
    """
    launch()
    found = [
        problem for folder, rows in expected.items() for problem in _wrong(folder, Counter(rows), (inputs or {}).get(folder, []))
    ]
    before = heads(expected)
    launch()
    if heads(expected) != before:
        found.append(f"(c) a further launch added entries: {before} → {heads(expected)}")
    return found


def heads(folders: Iterable[Path]) -> list[str]:
    """The newest entry of each."""
    return [str(Ledger.open(str(folder)).head()) for folder in folders]


def _wrong(folder: Path, rows: Counter[str], inputs: list[Path]) -> list[str]:
    ledger = Ledger.open(str(folder))
    entries = list(ledger.entries())
    found = []
    have = rows_of(folder) if entries else Counter()
    if have != rows:
        found.append(f"(a) {folder.name}: {dict(have - rows)} too many, {dict(rows - have)} missing")
    slices = sorted(
        (e.data.new_data.interval for e in entries if e.data is not None and e.data.new_data is not None), key=lambda i: i.start
    )
    ends = [0, *(each.start + each.rows for each in slices)]
    if [each.start for each in slices] != ends[:-1] or ends[-1] != rows.total():
        found.append(f"(a) {folder.name}: offsets are {slices}, and there are {rows.total()} rows")
    readers = {Ledger.open(str(each)).seed().dataset_id: Ledger.open(str(each)) for each in inputs}
    found += [f"(b, e) {folder.name}: {problem}" for problem in ledger.verify(inputs=readers).problems]
    if ledger.resume() != fold(entries):
        found.append(f"(d) {folder.name}: resumed at {ledger.resume()}, folded {fold(entries)}")
    if left_over(folder):
        found.append(f"{folder.name}: {[path.name for path in left_over(folder)]} left over")
    return found
