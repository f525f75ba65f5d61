"""Inputs that look real: made from a seed, of any size, in the page cache once they are made."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

MIB = 1 << 20
POOL = 32  # different chunks of 1 MiB; a file is a random row of them
WORDS = tuple(
    "GET POST user session cache index/login timeout retry accepted connection closed by peer upstream request completed in ms "  # noqa: SIM905
    "status order shipment invoice worker queue".split()
)


def log_line(chance: random.Random) -> str:
    """About 100 characters, as a server logs them; one in 2,000 has letters that are not ASCII."""
    when = f"2026-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}T{chance.randint(0, 23):02d}:{chance.randint(0, 59):02d}"
    what = " ".join(chance.choices(WORDS, k=6))
    name = " Zoë Müller" if chance.random() < 0.0005 else ""
    who = f"host-{chance.randint(1, 400)} svc[{chance.randint(100, 9999)}]"
    return f"{when}:{chance.randint(0, 59):02d}Z {who}: {what} id={chance.getrandbits(32):08x}{name}"


def short_line(chance: random.Random) -> str:
    """About 20 characters: a number, a key, a word."""
    how = chance.choice(("ok", "fail", "slow"))
    return f"{chance.getrandbits(20):06d} k{chance.randint(0, 9999):04d} {how}{'x' * chance.randint(0, 4)}"


def _chunks(make: Callable[[random.Random], str], size: int) -> Iterator[bytes]:
    chance = random.Random(20)
    pool: list[bytes] = []
    while len(pool) < min(POOL, size // MIB + 1):
        lines, length = [], 0
        while length < min(MIB, size):
            line = make(chance)
            if chance.random() < 0.1:
                line = "." + line[1:]  # one line in ten begins with a full stop
            lines.append(line)
            length += len(line) + 1
        pool.append(("\n".join(lines) + "\n").encode())
    done = 0
    while done < size:
        chunk = chance.choice(pool)
        yield chunk
        done += len(chunk)


def make_lines(path: Path, size: int, make: Callable[[random.Random], str] = log_line) -> Path:
    """A file of about `size` bytes of lines; kept when it is there already."""
    if not path.exists():
        with path.with_suffix(".part").open("wb") as file:
            for chunk in _chunks(make, size):
                file.write(chunk)
        path.with_suffix(".part").rename(path)
    touch(path)
    return path


def make_long(path: Path, size: int, length: int) -> Path:
    """A file of records of `length` bytes."""
    if not path.exists():
        with path.open("wb") as file:
            record = (b"0123456789abcdef" * (length // 16 + 1))[: length - 1] + b"\n"
            for _ in range(max(1, size // length)):
                file.write(record)
    return path


def make_many(folder: Path, count: int, in_each: int = 1000) -> Path:
    """`count` small files in folders of `in_each`."""
    for number in range(count):
        if number % in_each == 0:
            below = folder / f"folder-{number // in_each:04d}"
            below.mkdir(parents=True, exist_ok=True)
        (below / f"file-{number % in_each:04d}.txt").write_bytes(b"a line\n")
    return folder


def make_small(folder: Path, count: int, size: int = 12_000, in_each: int = 1000) -> Path:
    """`count` files of lines of about `size` bytes each, in folders of `in_each`; kept when they are there already."""
    if folder.exists():
        return folder
    chunks = _chunks(log_line, count * (size + 200) + MIB)
    lines: list[bytes] = []
    for number in range(count):
        if number % in_each == 0:
            below = folder / f"folder-{number // in_each:04d}"
            below.mkdir(parents=True)
        file, length = [], 0
        while length < size:
            lines = lines or next(chunks).splitlines(keepends=True)
            file.append(lines.pop())
            length += len(file[-1])
        (below / f"file-{number % in_each:04d}.txt").write_bytes(b"".join(file))
    return folder


def size_of(source: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    return source.stat().st_size if source.is_file() else sum(path.stat().st_size for path in source.rglob("*") if path.is_file())


def touch(path: Path) -> None:
    """Reads a file once, so that it is in the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(4 * MIB):
            pass


def counted(folder: Path) -> tuple[int, int]:
    """Lines and bytes of the files in a folder (or of a file) that are output: not those that begin with `_` or `.`."""
    lines = size = 0
    for path in [folder] if folder.is_file() else folder.rglob("*"):
        below = path.relative_to(folder).parts
        if not path.is_file() or any(part[0] in "_." for part in below):
            continue
        with path.open("rb", buffering=0) as file:
            while piece := file.read(4 * MIB):
                lines += piece.count(b"\n")
                size += len(piece)
    return lines, size
