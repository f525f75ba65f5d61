"""A case: random sources, a random DAG over them, its sinks, and a random cut of the input. All of it is data, from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from decimal import Decimal

import attrs

from tests.laws.columns import DRAWN, Columns, Row, Rows, names_of, pool_of, random_column
from tests.laws.columns import KINDS as COLUMN_KINDS
from tests.laws.nodes import Drawing, Node, Stream
from tests.laws.registry import KINDS, WEIGHTS

MAX_ROWS = 300
"""The most rows of a stream: joins of joins grow."""
_LARGEST = 2**62


@attrs.frozen
class Source:
    """Files of one format, with the rows of each.

    Attributes:
        launches: for each file, the number of the launch from which on it is there.
        rows_of_group: the rows of a row group of Parquet, which is the smallest block.
        late: the columns that the first files do not have, each with the launch from which on files have it.
    """

    columns: Columns
    format: str
    files: tuple[tuple[Row, ...], ...]
    launches: tuple[int, ...]
    block_size: int
    blocks_threshold: int | None = None
    rows_of_group: int = 2
    late: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def rows(self) -> Rows:
        """All rows."""
        return Rows(row for file in self.files for row in file)

    def until(self, launch: int) -> Source:
        """Return the source with the files that are there in a launch."""
        files = [(rows, number) for rows, number in zip(self.files, self.launches, strict=True) if number <= launch]
        return attrs.evolve(self, files=tuple(rows for rows, _ in files), launches=tuple(number for _, number in files))

    def with_late(self, name: str, launch: int) -> Source:
        """Return the source with a column that files have from a launch on: rows of files before it have nulls there."""
        at = names_of(self.columns).index(name)
        files = tuple(
            rows if number >= launch else tuple((*row[:at], None, *row[at + 1 :]) for row in rows)
            for rows, number in zip(self.files, self.launches, strict=True)
        )
        return attrs.evolve(self, files=files, late={**self.late, name: launch})

    def places_in(self, launch: int) -> list[int]:
        """Return the places of the columns that files of a launch have."""
        return [at for at, column in enumerate(self.columns) if self.late.get(column.name, 0) <= launch]


@attrs.frozen
class Target:
    """A sink: the stream that it takes, its kind, its mode.

    Attributes:
        keys: of a changelog, or an upsert: the columns that identify a row, or `*`.
        partition_columns: the columns that name folders.
        max_file_rows: the most rows of a file.
    """

    stream: str
    kind: str
    mode: str | None = None
    keys: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] = ()
    max_file_rows: int | None = None


@attrs.frozen
class Case:
    """A random DAG with its input and a cut of it.

    Attributes:
        slots: processes that work at once; with 1, tasks run in this one.
        deaths: for some launches, the number of the touch of a file at which they die.
        is_rerun: what dies is launched again before more files come.
        windows_of_launch: the most windows of each of two launches before the first one; None: there are no such launches.
        every: for the launches that are continuous, the seconds between two emission points; they are stopped when all is read.
        is_final: nothing is kept: there is one launch.
        is_moving: operators with a number of partitions have another one in each launch.
        options: further settings of all launches.
    """

    sources: tuple[Source, ...]
    nodes: tuple[Node, ...]
    targets: tuple[Target, ...]
    slots: int = 1
    deaths: Mapping[int, int] = attrs.field(factory=dict)
    is_rerun: bool = True
    windows_of_launch: int | None = None
    every: Mapping[int, float | None] = attrs.field(factory=dict)
    is_final: bool = False
    is_moving: bool = False
    options: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def launches(self) -> int:
        """The number of launches."""
        return 1 + max((number for source in self.sources for number in source.launches), default=0)

    @property
    def grows(self) -> bool:
        """True if files of later launches have further columns."""
        return any(source.late for source in self.sources)

    def until(self, launch: int) -> Case:
        """Return the case with the files that are there in a launch."""
        return attrs.evolve(self, sources=tuple(source.until(launch) for source in self.sources))

    def streams(self, launch: int | None = None) -> dict[str, Stream]:
        """Return all streams by name. `launch`: with the columns that files of this launch have."""
        streams = {}
        for number, source in enumerate(self.sources):
            places = range(len(source.columns)) if launch is None else source.places_in(launch)
            streams[f"s{number}"] = Stream(tuple(source.columns[at] for at in places))
        for number, node in enumerate(self.nodes):
            leaving = KINDS[node.kind].streams(node, [streams[name] for name in node.inputs])
            streams |= {f"n{number}.{port}": stream for port, stream in leaving.items()}
        return streams

    def expected(self) -> dict[str, Rows]:
        """Return the rows of all streams by the reference."""
        streams = self.streams()
        rows = {f"s{number}": source.rows for number, source in enumerate(self.sources)}
        for number, node in enumerate(self.nodes):
            inputs = [streams[name] for name in node.inputs]
            leaving = KINDS[node.kind].rows(node, inputs, [rows[name] for name in node.inputs])
            rows |= {f"n{number}.{port}": some for port, some in leaving.items()}
        return rows


def random_case(seed: int, *, max_slots: int = 1, servers: bool = False) -> Case:
    """Return the case of a seed. `servers`: with sinks that take longer, Iceberg and PostgreSQL."""
    rng = random.Random(seed)
    launches = rng.choice([1, 1, 1, 2, 2, 3])
    key = rng.choice([name for name in DRAWN if COLUMN_KINDS[name].is_plain])
    sources = tuple(_source(rng, key, launches) for _ in range(rng.choice([1, 1, 2, 2, 3])))
    drawing = Drawing(rng, {f"s{number}": Stream(source.columns) for number, source in enumerate(sources)})
    rows = {f"s{number}": source.rows for number, source in enumerate(sources)}
    nodes: list[Node] = []
    wanted = rng.choice([2, 3, 3, 4, 4, 5, 6, 8])
    for _ in range(60):
        if len(nodes) >= wanted:
            break
        node = KINDS[rng.choices(list(KINDS), [WEIGHTS.get(kind, 1) for kind in KINDS])[0]].draw(drawing)
        if node is None:
            continue
        kind, inputs = KINDS[node.kind], [drawing.streams[name] for name in node.inputs]
        if any(stream.is_loose for stream in inputs) and not kind.takes_records:
            continue
        if node.partitions is None and (node.kind == "union" or kind.is_keyed) and rng.random() < 0.3:
            node = attrs.evolve(node, partitions=rng.choice([1, 2, 3]))
        leaving = kind.streams(node, inputs)
        results = kind.rows(node, inputs, [rows[name] for name in node.inputs])
        if not all(_is_held(results[port], stream.columns) for port, stream in leaving.items()):
            continue
        nodes.append(node)
        drawing.streams |= {f"n{len(nodes) - 1}.{port}": stream for port, stream in leaving.items()}
        rows |= {f"n{len(nodes) - 1}.{port}": some for port, some in results.items()}
        drawing.number = len(nodes)
    case = Case(sources, tuple(nodes), (), slots=max_slots if rng.random() < 0.5 else 1)
    if rng.random() < 0.15:
        deaths = {rng.randrange(launches): int(2 ** rng.uniform(0, 9)) for _ in range(rng.choice([1, 1, 2]))}
        case = attrs.evolve(case, deaths=deaths, is_rerun=rng.random() < 0.5)
    elif rng.random() < 0.15:
        case = attrs.evolve(case, windows_of_launch=rng.choice([1, 2]))
    case = attrs.evolve(case, targets=_targets(rng, case, rows, servers))
    if rng.random() < 0.25:
        case = attrs.evolve(case, every=_every(rng, case))
    options = {"retain_windows": rng.choice([1, 1, 2])} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        options["windows_in_flight"] = rng.choice([1, 3])
    case = attrs.evolve(case, is_moving=rng.random() < 0.3, options=options)
    has_folders = any(each.partition_columns for each in case.targets)  # a late column may be the only one that names none
    if case.launches > 1 and rng.random() < 0.4 and not has_folders:
        case = _with_late_columns(rng, case)
    is_alone = launches == 1 and not (case.deaths or case.windows_of_launch or case.every)
    return attrs.evolve(case, is_final=is_alone and rng.random() < 0.3)


def _with_late_columns(rng: random.Random, case: Case) -> Case:
    """Return a case in which files of later launches have further columns: some that no operator and no sink names.

    A join may have added a suffix to such a name.
    """
    sources, named = list(case.sources), repr((case.nodes, case.targets))
    for at, source in enumerate(case.sources):
        for column in source.columns[2:]:
            if column.has_nulls and f"'{column.name}" not in named and rng.random() < 0.7:
                sources[at] = sources[at].with_late(column.name, rng.randrange(1, case.launches))
    return attrs.evolve(case, sources=tuple(sources))


def _every(rng: random.Random, case: Case) -> dict[int, float | None]:
    """Return the seconds between the emission points of some launches, which are continuous."""
    streams = case.streams()
    whole = any(streams[each.stream].changes and each.mode in (None, "replace") for each in case.targets)
    chosen = rng.sample(range(case.launches), rng.randint(1, case.launches))
    return {launch: rng.choice([0, 0, 5, 1000] if whole else [None, 0, 5, 1000]) for launch in chosen}


def _source(rng: random.Random, key: str, launches: int) -> Source:
    columns = [random_column(rng, "k", key), random_column(rng, "v", rng.choice(["int", "int", "float", "decimal", "short"]))]
    columns += [random_column(rng, f"x{number}", rng.choice(DRAWN)) for number in range(rng.choice([0, 1, 1, 2, 3]))]
    if rng.random() < 0.3:
        columns.append(random_column(rng, "t", "text"))
    pools = [pool_of(rng, column) for column in columns]
    size = rng.choice([0, 1, 4, 8, 8, 20])
    files = tuple(
        tuple(tuple(map(rng.choice, pools)) for _ in range(rng.randint(0, size))) for _ in range(rng.choice([1, 2, 2, 3, 4]))
    )
    formats = ["parquet"]
    if all(column.of.in_json and column.is_finite for column in columns):
        formats += ["json_lines"] * 2
        if not any(column.kind == "list" for column in columns):
            formats += ["csv"] * 2
    kind = rng.choice(formats)
    return Source(
        columns=tuple(columns),
        format=kind,
        files=files,
        launches=tuple(rng.randrange(launches) for _ in files),
        block_size=rng.choice([1 << 20, 1 << 20, 900, 300] if kind == "parquet" else [1 << 20, 400, 150, 40]),
        blocks_threshold=rng.choice([None, 1, 2, 5]),
        rows_of_group=rng.choice([2, 5, 100]),
    )


def _is_held(rows: Rows, columns: Columns) -> bool:
    """Return True if columns hold all values, NaN is only where it may be, and there are not too many rows."""
    if rows.total() > MAX_ROWS:
        return False
    for row in rows:
        for value, column in zip(row, columns, strict=True):
            if isinstance(value, float) and column.is_finite and not math.isfinite(value):
                return False
            if isinstance(value, int) and column.kind not in ("wide", "huge") and abs(value) > _LARGEST:
                return False
            if isinstance(value, Decimal) and abs(value) > Decimal(10) ** 30:
                return False
            if value is None and not column.has_nulls:
                raise AssertionError(f"a null in {column}")
    return True


_NOT_IN = {
    "csv": ("bytes", "list", "struct"),
    "json_lines": ("bytes",),
    "sqlite": ("huge", "struct"),
    "delta": ("clock", "huge"),
    "parquet": (),
    "collector": (),
}
"""The kinds of columns that sinks do not take."""
_SLOW: dict[str, tuple[str, ...]] = dict.fromkeys(("iceberg", "postgres"), ("tiny", "unsigned", "huge", "nanos", "struct"))
_TAKES_NAN = ("parquet", "delta", "collector", "csv", "iceberg", "postgres")
FILES = ("csv", "json_lines", "parquet")
_UPSERTS = ("sqlite", "delta", "iceberg", "postgres")
_NAMES_FOLDERS = dict.fromkeys(FILES, ("bool", "short", "int", "wide", "day", "text")) | {
    "delta": ("bool", "short", "int", "wide", "day"),
    "iceberg": ("bool", "short", "int", "wide", "day", "text"),
}
"""The kinds of columns that can name folders. Delta reads an empty text as null."""


def _targets(rng: random.Random, case: Case, rows: Mapping[str, Rows], servers: bool) -> tuple[Target, ...]:
    """Return sinks on all streams that nothing else takes, and on some others."""
    streams = case.streams()
    taken = {name for node in case.nodes for name in node.inputs}
    ends = [name for name in streams if name not in taken and not _is_beside(name, streams, taken)]
    others = [name for name in streams if name in taken]
    chosen = [*ends, *rng.sample(others, min(len(others), rng.choice([0, 0, 1])))]
    if rng.random() < 0.15:
        chosen.append(rng.choice(chosen))  # two sinks on one stream
    targets = [_target(rng, name, streams[name], rows[name], servers) for name in chosen]
    ordered = {f"n{number}.output" for number, node in enumerate(case.nodes) if node.kind == "sort"}  # folders have no order
    return tuple(attrs.evolve(each, partition_columns=()) if each.stream in ordered else each for each in targets)


def _is_beside(name: str, streams: Mapping[str, Stream], taken: set[str]) -> bool:
    """Return True for a port of several of an operator, another one of which is taken, or comes first."""
    node = name.partition(".")[0]
    beside = [other for other in streams if other.partition(".")[0] == node]
    return any(other in taken for other in beside) or name != beside[0]


def _target(rng: random.Random, name: str, stream: Stream, rows: Rows, servers: bool) -> Target:
    kinds = [
        kind
        for kind, lacking in (_NOT_IN | _SLOW if servers else _NOT_IN).items()
        if not any(column.kind in lacking for column in stream.columns)
        and (kind in _TAKES_NAN or all(column.is_finite for column in stream.columns))
    ]
    if stream.columns[0].has_nulls and len(stream.columns) == 1 and "csv" in kinds:
        kinds.remove("csv")  # a row of its own without any text
    if "postgres" in kinds and any(isinstance(value, str) and "\0" in value for row in rows for value in row):
        kinds.remove("postgres")  # refuses such a text by name
    if servers:
        kinds += [kind for kind in kinds if kind in _SLOW] * 3
    if stream.unique:
        kinds += [kind for kind in kinds if kind in _UPSERTS] * 2
    kind = "collector" if stream.is_loose else rng.choice([*kinds, "collector"])
    modes: list[str | None] = [None]
    if kind != "collector":
        modes.append("replace" if stream.changes else "append")
    if kind in _UPSERTS:
        modes += ["upsert"] * 3
    if kind in FILES:
        modes += ["changelog"]
    mode = rng.choice(modes)
    keys = rng.choice([("*",) if mode == "upsert" else (), stream.unique or (("*",) if mode == "upsert" else ())])
    partition_columns = _partition_columns(rng, kind, stream.columns)
    return Target(
        name,
        kind,
        mode,
        keys=keys if mode in ("changelog", "upsert") else (),
        partition_columns=partition_columns,
        max_file_rows=rng.choice([None, None, None, 1, 3]) if kind in FILES else None,
    )


def _partition_columns(rng: random.Random, kind: str, columns: Columns) -> tuple[str, ...]:
    named = tuple(column for column in columns if column.kind in _NAMES_FOLDERS.get(kind, ()) and rng.random() < 0.5)
    left = [column for column in columns if column not in named]
    is_held = len(left) > 1 or (bool(left) and not (kind == "csv" and left[0].has_nulls))
    return names_of(named) if is_held and rng.random() < 0.4 else ()
