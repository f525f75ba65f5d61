"""Text of real words, as often as words are (Zipf): made from a seed, of any size. What counts of its words come to."""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.lines.inputs import MIB, POOL, touch

SEED = 31
IN_A_LINE = 12


def words() -> list[str]:
    """The words of Python's own library, its comments and names, the most frequent first: some 50,000."""
    found: Counter[str] = Counter()
    for folder, below, files in os.walk(os.path.dirname(os.__file__)):
        below[:] = sorted(name for name in below if name not in ("site-packages", "__pycache__"))
        for file in sorted(files):
            if file.endswith(".py"):
                found.update(re.findall("[A-Za-z]+", Path(folder, file).read_text(encoding="utf-8", errors="ignore")))
    return sorted(found, key=lambda word: (-found[word], word))


def make_text(path: Path, size: int) -> Path:
    """A file of about `size` bytes: lines of 12 words, of which the n-th is n times as rare as the first."""
    with path.open("wb") as file:
        for chunk in _chunks(size):
            file.write(chunk)
    touch(path)
    return path


def _chunks(size: int) -> Iterator[bytes]:
    chance = np.random.default_rng(SEED)
    vocabulary = np.array(words(), dtype=object)
    share = 1 / np.arange(1, len(vocabulary) + 1)
    share /= share.sum()
    pool: list[bytes] = []
    while len(pool) < min(POOL, size // MIB + 1):
        drawn = chance.choice(vocabulary, size=min(size, MIB) // (7 * IN_A_LINE) * IN_A_LINE, p=share)
        lines = (" ".join(line) for line in drawn.reshape(-1, IN_A_LINE))
        pool.append(("\n".join(lines) + "\n").encode())
    done = 0
    while done < size:
        chunk = pool[int(chance.integers(len(pool)))]
        yield chunk
        done += len(chunk)


def summed(folder: Path) -> tuple[int, int]:
    """Return how many lines the files of a folder have, and a sum over them in which their order does not count."""
    lines = total = 0
    for path in folder.rglob("*"):
        if path.is_file() and path.name[0] not in "._" and "_dagflow" not in path.parts:
            found = path.read_bytes().splitlines()
            lines += len(found)
            total += sum(map(zlib.crc32, found))
    return lines, total
