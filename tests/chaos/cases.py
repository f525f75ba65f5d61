"""What is killed: the applications with their input, and the places where they run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tests.chaos import oracle


@attrs.frozen
class Application:
    """An application with its input, and what it has to make of it.

    Attributes:
        windows: about how many it takes.
    """

    name: str
    folder: Path
    settings: dict[str, str]
    content: oracle.Content
    expected: Any
    rows_of: Callable[[bytes], int]
    windows: int


def line_filter(folder: Path, files: int = 12) -> Application:
    """The filter of lines, on files of lines of different length."""
    rng, kept = random.Random(1), Counter[bytes]()
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(files):
        lines = [f"{'.' * (rng.random() < 0.3)}{number} {n} {'x' * rng.randrange(40)}".encode() for n in range(200)]
        (folder / "in" / f"{number:02d}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
        kept.update(line for line in lines if not line.startswith(b"."))
    settings = {"input": "in", "operator.splitter.block_size": "1024", "operator.splitter.blocks_threshold": "2"}
    return Application("line_filter", folder, settings, oracle.lines, kept, lambda data: data.count(b"\n"), 3 * files)


def block_copy(folder: Path, files: int = 12) -> Application:
    """The copy of blocks: each becomes a file that is called by the block's number."""
    rng, copies = random.Random(2), dict[str, bytes]()
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(files):
        data = rng.randbytes(9_000 + 500 * number)
        (folder / "in" / f"{number:02d}.bin").write_bytes(data)
        for start in range(0, len(data), 2048):
            copies[f"{len(copies):x}"] = data[start : start + 2048]
    (folder / "list.txt").write_text("".join(f"in/{number:02d}.bin\n" for number in range(files)))
    settings = {"list": "list.txt", "block_size": "2048", "operator.splitter.blocks_threshold": "2"}
    return Application("block_copy", folder, settings, oracle.files, copies, lambda data: 1, 3 * files)


def word_count(folder: Path, files: int = 12) -> Application:
    """Words over an exchange, with totals that are kept over windows."""
    rng, words = random.Random(3), Counter[str]()
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(files):
        text = "".join(f"{' '.join(f'w{int(rng.paretovariate(0.7))}' for _ in range(8))}\n" for _ in range(120))
        (folder / "in" / f"{number:02d}.txt").write_text(text)
        words.update(text.split())
    small = {"block_size": "1024", "operator.lines.splitter.blocks_threshold": "2", "operator.writer.header": "false"}
    settings = {"input": "in", **small}
    return Application("word_count", folder, settings, oracle.totals, words, lambda data: data.count(b"\n"), 2 * files)


APPLICATIONS = {"line_filter": line_filter, "block_copy": block_copy, "word_count": word_count}


@attrs.define
class Place:
    """Where launches run.

    Attributes:
        options: of the command line.
        kinds: whom to kill, each as often as it stands here.
        seconds: about how long an undisturbed launch takes; it is measured when there is one.
        settings: of Spark.
    """

    name: str
    options: list[str]
    kinds: tuple[str, ...]
    seconds: float
    settings: dict[str, str] = attrs.field(factory=dict)


def local() -> Place:
    """The local runner."""
    return Place("local", ["--runner", "local"], ("driver",) * 6 + ("pause",), 2.0)


def spark() -> Place:
    """Spark within the launch."""
    kinds = ("driver", "driver", "python", "python", "python", "python", "jvm", "pause", "zombies")
    return Place("spark", ["--master", "local[2,4]"], kinds, 12.0)


def cluster(master: str) -> Place:
    """A standalone cluster whose servers were started by this process."""
    kinds = ("driver", "python", "python", "executor", "executor", "executor", "jvm", "zombies")
    return Place("cluster", ["--master", master], kinds, 15.0, {"spark.executor.memory": "512m"})
