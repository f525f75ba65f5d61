"""Tables that look real: 20 columns of integers, floats, texts, a date and a timestamp; made from a seed, of any size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.lines.inputs import touch

CHUNK_ROWS = 40_000  # about 7 MB
POOL = 6  # different chunks; a file is a random row of them
WORDS = np.array(["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet"])
TYPES = {
    **{f"i{n}": "int64" for n in range(5)},
    **{f"f{n}": "float64" for n in range(5)},
    **{f"s{n}": "string" for n in range(8)},
    "d": "date32",
    "t": "timestamp[us]",
}
"""The columns and their types as Arrow calls them."""
JSON_TYPES = {name: "string" if kind in ("date32", "timestamp[us]") else kind for name, kind in TYPES.items()}
"""The same in JSON, which has no dates and times."""
THREE = ("i2", "s3", "d")
"""Those of the narrow cases."""
QUOTED = ("s2", "s5")
"""Those whose texts have delimiters, quotes and line ends in them, in the file with quotes."""


def _chunk(chance: np.random.Generator, rows: int, *, quoted: bool) -> bytes:
    columns: list[NDArray[np.str_]] = [chance.integers(0, 10 ** (3 + n), rows).astype(str) for n in range(5)]
    columns += [np.round(chance.normal(0, 100, rows), 3 + n % 3).astype(str) for n in range(5)]
    for name in (name for name in TYPES if name[0] == "s"):
        text = np.char.add(WORDS[chance.integers(0, len(WORDS), rows)], chance.integers(0, 1000, rows).astype(str))
        if quoted and name in QUOTED:
            rest = np.where(chance.random(rows) < 0.1, ', with\na line end and ""quotes""', " plain")
            text = np.char.add(np.char.add('"', np.char.add(text, rest)), '"')
        columns.append(text)
    columns.append((np.datetime64("2020-01-01") + chance.integers(0, 2000, rows)).astype(str))
    times = (np.datetime64("2020-01-01T00:00:00") + chance.integers(0, 10**8, rows)).astype(str)
    columns.append(np.char.replace(times, "T", " "))
    return ("\n".join(map(",".join, zip(*(column.tolist() for column in columns), strict=True))) + "\n").encode()


def make_table(path: Path, size: int, *, quoted: bool = False) -> Path:
    """A CSV file of about `size` bytes, in the page cache; kept when it is there already."""
    if not path.exists():
        chance = np.random.default_rng(20)
        rows = min(CHUNK_ROWS, max(100, size // 200))
        pool = [_chunk(chance, rows, quoted=quoted) for _ in range(POOL)]
        with path.with_suffix(".part").open("wb") as file:
            file.write((",".join(TYPES) + "\n").encode())
            while file.tell() < size:
                file.write(pool[chance.integers(0, POOL)])
        path.with_suffix(".part").rename(path)
    touch(path)
    return path


def make_json(path: Path, size: int) -> Path:
    """A file of JSON lines of about `size` bytes: the rows of the CSV file, all keys in each; kept when it is there already."""
    if not path.exists():
        chance = np.random.default_rng(20)
        rows = min(CHUNK_ROWS, max(100, size // 400))
        pool = [_objects(_chunk(chance, rows, quoted=False)) for _ in range(POOL)]
        with path.with_suffix(".part").open("wb") as file:
            while file.tell() < size:
                file.write(pool[chance.integers(0, POOL)])
        path.with_suffix(".part").rename(path)
    touch(path)
    return path


def _objects(chunk: bytes) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    types = {name: pa.type_for_alias(kind) for name, kind in JSON_TYPES.items()}
    names = arrow_csv.ReadOptions(column_names=list(types))
    table = arrow_csv.read_csv(io.BytesIO(chunk), names, convert_options=arrow_csv.ConvertOptions(column_types=types))
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def summed(folder: Path) -> tuple[int, int, int]:
    """Rows, columns, and the sum of a column of the Parquet files in a folder (or of one file): the same for all contestants."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    paths = [folder] if folder.is_file() else [p for p in folder.rglob("*.parquet") if "_dagflow" not in p.parts]
    rows = total = columns = 0
    for path in paths:
        table = pq.read_table(path, partitioning=None)
        rows, columns = rows + table.num_rows, table.num_columns
        total += pc.sum(table.column("i2")).as_py() + pc.sum(pc.binary_length(table.column("s3").cast("binary"))).as_py()
    return rows, columns, total
