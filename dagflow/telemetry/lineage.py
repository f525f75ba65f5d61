"""The inputs and outputs of a launch for lineage: datasets, their files, rows and ledger entries. Their size is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dagflow.errors.shown import without_secrets
from dagflow.ledger import DataFile, ExecuteQuery, InputSlice, Ledger, LedgerEntry, SchemaField
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.storage import absolute, split_url

MAX_FILES = 1000
"""Files of one dataset that are named; further ones are counted."""


@attrs.define
class InputFiles:
    """The files of an input that a launch has read: of each, the ranges `[start, stop)` of its bytes.

    `omitted`: further blocks, of files that are not named.
    """

    ranges: dict[str, list[tuple[int, int]]] = attrs.field(factory=dict)
    omitted: int = 0

    def add(self, path: str, start: int, stop: int) -> None:
        """Add a block. Blocks that follow each other are one range."""
        if path not in self.ranges and len(self.ranges) >= MAX_FILES:
            self.omitted += 1
            return
        known = self.ranges.setdefault(path, [])
        if known and known[-1][1] == start:
            known[-1] = (known[-1][0], stop)
        elif len(known) < MAX_FILES:
            known.append((start, stop))
        else:
            self.omitted += 1


@attrs.define
class InputLineage:
    """An input: a folder, a file or a dataset. `rows`: the offsets `[start, stop)` of the rows that were read of a dataset."""

    path: str
    files: InputFiles = attrs.field(factory=InputFiles)
    dataset: str | None = None
    rows: tuple[int, int] | None = None
    entry: str | None = None


@attrs.define
class OutputLineage:
    """An output folder: what this launch has added to its dataset. `rows`: their offsets `[start, stop)`."""

    path: str
    dataset: str | None = None
    entry: int | None = None
    hash: str | None = None
    schema: tuple[SchemaField, ...] = ()
    files: list[DataFile] = attrs.field(factory=list)
    file_count: int = 0
    rows: tuple[int, int] | None = None
    row_count: int = 0
    size: int = 0


class RunLineage:
    """Collects the inputs and outputs of a launch, from the plans of its windows and the entries of its ledgers."""

    def __init__(self, plan: Plan) -> None:
        self.inputs: dict[str, InputLineage] = {}
        self.outputs: dict[str, OutputLineage] = {}
        for node in plan.dag.nodes.values():
            for path in map(absolute, node.operator.input_paths()):
                self.inputs[path] = InputLineage(path)
            for folder in map(absolute, node.operator.output_folders()):
                self.outputs[folder] = OutputLineage(folder)

    def planned(self, plan: WindowPlan) -> None:
        """Add the files that a window reads."""
        for path, start, stop in _blocks(plan):
            self._input_of(path).files.add(path, start, stop)

    @property
    def is_full(self) -> bool:
        """Return True once no input can take the name of another file: plans need not be read any more."""
        return bool(self.inputs) and all(len(each.files.ranges) >= MAX_FILES for each in self.inputs.values())

    def appended(self, folder: str, seq: int) -> None:
        """Add an entry of an output's ledger. Raises LedgerError, StorageError."""
        ledger = Ledger.open(folder, durable=False)
        entry = ledger.entry(seq)
        output = self.outputs.setdefault(absolute(folder), OutputLineage(absolute(folder)))
        schema = ledger.schema_at(seq)
        output.entry, output.hash = seq, entry.hash
        output.schema = () if schema is None else schema.schema
        output.dataset = output.dataset or getattr(ledger.entry(0).event, "dataset_id", None)
        if isinstance(entry.event, ExecuteQuery):
            transform = ledger.transform_at(seq)
            paths = {} if transform is None else transform.spec.get("paths", {})
            for part in entry.event.inputs:
                self._slice(paths.get(part.dataset_id), part)
        self._add_rows(output, entry)

    def _add_rows(self, output: OutputLineage, entry: LedgerEntry) -> None:
        rows = None if entry.data is None else entry.data.new_data
        if rows is None:
            return
        start = rows.interval.start if output.rows is None else output.rows[0]
        output.rows = (start, rows.interval.end + 1)
        output.row_count += rows.interval.rows
        output.size += rows.size
        output.file_count += len(rows.files)
        output.files.extend(rows.files[: MAX_FILES - len(output.files)])

    def _slice(self, path: str | None, part: InputSlice) -> None:
        if path is None or part.new_offset is None:
            return
        own = self.inputs.setdefault(absolute(path), InputLineage(absolute(path)))
        first = 0 if part.prev_offset is None else part.prev_offset + 1
        own.dataset = part.dataset_id
        own.rows = (first if own.rows is None else own.rows[0], part.new_offset + 1)
        own.entry = None if part.last_block is None else part.last_block.hash

    def _input_of(self, path: str) -> InputLineage:
        """Return the declared input that a file belongs to, or else its folder."""
        for root, each in self.inputs.items():
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return each
        folder = path.rpartition("/")[0] or "/"
        return self.inputs.setdefault(folder, InputLineage(folder))


def _blocks(plan: WindowPlan) -> Iterator[tuple[str, int, int]]:
    """Yield file, start and stop of the blocks in a plan. Items of other kinds have none."""
    for items in plan.items.values():
        for _, value in items:
            fields: dict[str, Any] = value if isinstance(value, dict) else {}
            path, start, stop = fields.get("file_path"), fields.get("start"), fields.get("stop")
            if isinstance(path, str) and isinstance(start, int) and isinstance(stop, int):
                yield absolute(path), start, stop


def dataset_name(path: str) -> tuple[str, str]:
    """Return namespace and name of a folder or file by the naming of OpenLineage. Never a secret.

    >>> dataset_name("/data/logs/"), dataset_name("s3://bucket/logs"), dataset_name("sftp://ada:pw@host/logs")
    (('file', '/data/logs'), ('s3://bucket', 'logs'), ('sftp://ada:***@host', '/logs'))
    """
    scheme, rest = split_url(path)
    if scheme == "file":
        return "file", "/" + rest.strip("/")
    authority, _, name = rest.partition("/")
    is_bucket = scheme in ("s3", "s3a", "gs", "gcs")
    name = name.strip("/") if is_bucket else "/" + name.strip("/")
    return without_secrets(f"{scheme}://{authority}/").rstrip("/"), without_secrets(name or "/")
