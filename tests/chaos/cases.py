"""The applications whose launches are killed: their input, and the places where they run."""

from __future__ import annotations

import datetime
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from apps.orders import sample
from tests.chaos import joins, oracle, tables
from tests.conformance.keys.tumbled import SECOND, Hit, fired_in, late_in, model

APPS = Path(__file__).parents[2] / "apps"
OUTPUT = "OUTPUT"  # in settings: the folder of one series of launches


def lines_of(data: bytes) -> int:
    """The number of rows of a file of lines."""
    return data.count(b"\n")


@attrs.frozen
class Sink:
    """An output of an application, and what is to stand there.

    Attributes:
        folder: below that of the series; that itself, if it has no name.
        rows_of: counts the rows in a file's bytes.
    """

    content: oracle.Content
    expected: Any
    rows_of: Callable[[bytes], int] = lines_of
    folder: str = ""


@attrs.frozen
class Application:
    """An application with its input, and what it has to make of it.

    Attributes:
        windows: about how many it takes.
        deliver: brings the input of a launch, by the name of the output and the launch's number. True: there is no more to come.
        wrong: yields the promises that an output breaks beside those of its `sinks`: when the last launch has ended, or any.
        faults: failures of the services that it uses, by kind. They take the name of the output, whether the launch still runs,
            and a source of chance. True: the failure has hit the launch.
    """

    name: str
    folder: Path
    settings: dict[str, str]
    sinks: tuple[Sink, ...]
    windows: int
    path: Path = attrs.field(default=attrs.Factory(lambda self: APPS / self.name, takes_self=True))
    deliver: Callable[[str, int], bool] = lambda output, number: True
    wrong: Callable[[Path, bool], Iterable[str]] = lambda output, is_last: ()
    faults: Mapping[str, Callable[[str, Callable[[], bool], random.Random], bool]] = attrs.field(factory=dict)

    def settings_for(self, output: str) -> dict[str, str]:
        """The settings of launches that write to this folder."""
        return {key: value.replace(OUTPUT, output) for key, value in self.settings.items()}


def line_filter(folder: Path, files: int = 12) -> Application:
    """The filter of lines, on files of lines of different length."""
    rng, kept = random.Random(1), Counter[bytes]()
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(files):
        lines = [f"{'.' * (rng.random() < 0.3)}{number} {n} {'x' * rng.randrange(40)}".encode() for n in range(200)]
        (folder / "in" / f"{number:02d}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
        kept.update(line for line in lines if not line.startswith(b"."))
    small = {"operator.splitter.block_size": "1024", "operator.splitter.blocks_threshold": "2"}
    settings = {"input": "in", "output": OUTPUT, **small}
    return Application("line_filter", folder, settings, (Sink(oracle.lines, kept),), 3 * files)


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
    settings = {"list": "list.txt", "output": OUTPUT, "block_size": "2048", "operator.splitter.blocks_threshold": "2"}
    return Application("block_copy", folder, settings, (Sink(oracle.files, copies, lambda data: 1),), 3 * files)


def word_count(folder: Path, files: int = 12) -> Application:
    """Words over an exchange, with totals that are kept over windows. Each window replaces the output."""
    rng, words = random.Random(3), Counter[str]()
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(files):
        text = "".join(f"{' '.join(f'w{int(rng.paretovariate(0.7))}' for _ in range(8))}\n" for _ in range(120))
        (folder / "in" / f"{number:02d}.txt").write_text(text)
        words.update(text.split())
    small = {"block_size": "1024", "operator.lines.splitter.blocks_threshold": "2", "operator.writer.header": "false"}
    settings = {"input": "in", "output": OUTPUT, **small}
    return Application("word_count", folder, settings, (Sink(oracle.current, words),), 2 * files)


def access_log(folder: Path, files: int = 12) -> Application:
    """Requests by status and by hour, with totals over windows, and the lines that are not requests: three outputs."""
    rng, first = random.Random(4), datetime.datetime(2026, 2, 28, 20, tzinfo=datetime.UTC)
    statuses, hours, rejected = Counter[str](), Counter[str](), Counter[str]()
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(files):
        lines = []
        for request in range(100):
            if rng.random() < 0.05:
                lines.append(f"no request: {number}, {request}")
                rejected[lines[-1]] += 1
                continue
            time, status = first + datetime.timedelta(minutes=rng.randrange(60 * files)), rng.choice(("200", "304", "404"))
            lines.append(f'10.0.0.1 - - [{time:%d/%b/%Y:%H:%M:%S %z}] "GET /{"x" * rng.randrange(40)}" {status} 7 "-" "A"')
            statuses[status] += 1
            hours[f"{time:%Y-%m-%dT%H:00:00Z}"] += 1
        (folder / "in" / f"{number:02d}.log").write_text("".join(f"{line}\n" for line in lines))
    small = {"block_size": "2048", "operator.splitter.blocks_threshold": "2"}
    bare = {f"operator.{name}_writer.header": "false" for name in ("statuses", "hours")}
    sinks = (
        Sink(oracle.totals, statuses, folder="statuses"),
        Sink(oracle.totals, hours, folder="hours"),
        Sink(oracle.rejected, rejected, folder="rejects"),
    )
    return Application("access_log", folder, {"input": "in", "output": OUTPUT, **small, **bare}, sinks, 2 * files)


def package_stats(folder: Path, files: int = 12) -> Application:
    """The sizes of packages: tables of each window, which is one index, in two outputs."""
    rng, sections, maintainers = random.Random(5), Counter[str](), Counter[str]()
    texts = []
    for _ in range(files):
        packages, size, by_maintainer = Counter[str](), Counter[str](), Counter[str]()
        paragraphs = []
        for number in range(40):
            section, maintainer, kib = rng.choice(("libs", "net", "doc")), f"Team {rng.randrange(8)}", rng.randrange(1 << 20)
            packages[section] += 1
            size[section] += kib
            by_maintainer[maintainer] += kib
            fields = {"Package": f"lib{number}", "Section": section, "Maintainer": maintainer, "Installed-Size": kib}
            paragraphs.append("".join(f"{name}: {value}\n" for name, value in fields.items()) + " more\n" * rng.randrange(5))
        texts.append("\n".join(paragraphs))
        sections.update(f"{name},{packages[name]},{size[name]}" for name in packages)
        maintainers.update(f"{name},{kib}" for name, kib in by_maintainer.most_common(3))
    settings = {"input": "in", "sections": f"{OUTPUT}/sections", "maintainers": f"{OUTPUT}/maintainers", "top": "3"}
    settings |= {"block_size": one_window_each(folder, texts), "operator.index.splitter.blocks_threshold": "2"}
    settings |= {f"operator.{name}_writer.header": "false" for name in ("sections", "maintainers")}
    sinks = (Sink(oracle.texts, sections, folder="sections"), Sink(oracle.texts, maintainers, folder="maintainers"))
    return Application("package_stats", folder, settings, sinks, files)


def tumbling(folder: Path, files: int = 12) -> Application:
    """Sums by windows of event time, kept over windows; each of these is one file, so that it is known what comes late."""
    rng, windows = random.Random(6), []
    for number in range(files):
        seconds = (8 * number + min(0, round(rng.gauss(5, 15))) + rng.randrange(8) for _ in range(120))
        windows.append([Hit(rng.choice("abcde"), second * SECOND, rng.randrange(100)) for second in seconds])
    texts = ["".join(f"{hit.key} {hit.at:09d} {hit.n:2d}\n" for hit in hits) for hits in windows]
    settings = {"input": "in", "output": OUTPUT, "lateness": "12", "disorder": "5"}
    settings |= {"block_size": one_window_each(folder, texts), "operator.lines.splitter.blocks_threshold": "2"}
    fired, late = model(windows, 12, 5)
    sinks = (Sink(fired_in, fired, folder="fired"), Sink(late_in, late, folder="late"))
    return Application("tumbling", folder, settings, sinks, files + 1, Path(__file__).parent / "tumbling")


def orders(folder: Path, files: int = 12) -> Application:
    """Two tables, a database and two outputs of files. Files with other columns arrive with the first four launches."""
    sample.write(folder / "files", files)
    paths = sorted((folder / "files").iterdir())
    rows = tables.expected(paths)
    small = {"block_size": "2048", "operator.splitter.blocks_threshold": "2", "max_share": "1"}
    sinks = (
        Sink(tables.failed, rows.failed, tables.rows_of_parquet, folder="failed"),
        Sink(oracle.rejected, rows.rejected, folder="rejects"),
    )

    def deliver(output: str, number: int) -> bool:
        source = folder / f"{output}.in"
        source.mkdir(exist_ok=True)
        for path in paths[: number * len(paths) // len(sample.HEADERS)]:
            if not (source / path.name).exists():
                shutil.copy(path, folder / f"{path.name}.part")
                os.replace(folder / f"{path.name}.part", source / path.name)
        return number >= len(sample.HEADERS)

    def wrong(output: Path, is_last: bool) -> Iterable[str]:
        return (tables.wrong if is_last else tables.wrong_meanwhile)(output, rows)

    settings = {"input": f"{OUTPUT}.in", "output": OUTPUT, **small}
    return Application("orders", folder, settings, sinks, 2 * files, deliver=deliver, wrong=wrong)


def joined(folder: Path, files: int = 12) -> Application:
    """Joins, rankings and totals of orders and customers that change. The input arrives in parts.

    In half of the series, a part arrives when the results of the one before it are there: they are corrected. In the others it
    comes with the next launch, and meets state that has not been emitted.
    """
    results = joins.write(folder / "parts", files, 60)

    def deliver(output: str, number: int) -> bool:
        ledger, parts = folder / output / "placed" / "_dagflow" / "ledger", number
        if int(output.rpartition("-")[2]) % 2 == 0:
            parts = len(joins.standing(ledger.parents[1])) if ledger.exists() else 1
        for part in range(min(parts, joins.PARTS)):
            joins.arrive(folder / "parts", part, folder / f"{output}.in")
        return parts >= joins.PARTS

    def wrong(output: Path, is_last: bool) -> Iterable[str]:
        return joins.wrong(output, results, is_last)

    sinks = (
        Sink(joins.placed, results[-1].placed, folder="placed"),
        Sink(joins.top, results[-1].top, folder="top"),
    )
    settings = {"input": f"{OUTPUT}.in", "output": OUTPUT, "block_size": "512"}
    here = Path(__file__).parent / "joined"
    return Application("joined", folder, settings, sinks, 2 * files, here, deliver=deliver, wrong=wrong)


def one_window_each(folder: Path, texts: list[str]) -> str:
    """Writes files; the size of blocks of which each file has two: with a threshold of two, it is a window."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        (folder / "in" / f"{number:02d}.txt").write_text(text)
    size = -(-max(map(len, texts)) // 2)
    assert min(map(len, texts)) > size
    return str(size)


APPLICATIONS = {
    "line_filter": line_filter,
    "block_copy": block_copy,
    "word_count": word_count,
    "access_log": access_log,
    "package_stats": package_stats,
    "tumbling": tumbling,
    "orders": orders,
    "joined": joined,
}


@attrs.define
class Place:
    """The place where launches run.

    Attributes:
        options: of the command line.
        kinds: the processes to kill, each as often as it stands here.
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
    return Place("local", ["--runner", "local", "--slots", "1"], ("driver",) * 6 + ("pause",), 2.0)


def processes() -> Place:
    """The local runner in two worker processes."""
    kinds = ("driver", "driver", "python", "python", "python", "python", "server", "pause")
    return Place("processes", ["--runner", "local", "--slots", "2"], kinds, 3.0)


def spark() -> Place:
    """Spark within the launch."""
    kinds = ("driver", "driver", "python", "python", "python", "python", "jvm", "pause", "zombies")
    return Place("spark", ["--master", "local[2,4]"], kinds, 12.0)


def cluster(master: str) -> Place:
    """A standalone cluster whose servers were started by this process."""
    kinds = ("driver", "python", "python", "executor", "executor", "executor", "jvm", "zombies")
    return Place("cluster", ["--master", master], kinds, 15.0, {"spark.executor.memory": "512m"})
