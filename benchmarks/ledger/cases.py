"""Commits and resuming, at every length."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

from benchmarks.ledger.delta import DeltaLog, is_there
from benchmarks.ledger.log import Log, Read, data_file
from benchmarks.ledger.ours import OurLog
from benchmarks.report import say
from benchmarks.rounds import Case, Contestant, Goal, Limit

LENGTHS = (10, 1_000, 100_000)
Append = Callable[[int], list[float]]
QUICK = (10, 200)
RESUMES = 10
LONG = 10_000
COMMIT = 15  # ms, durable
FLAT = 1.5  # as long as the first, at most
SYNCED = (
    "dagflow with durable=True syncs the entry and its folders before a commit counts; with durable=False it survives the death"
    " of processes, not a power cut, which is what Delta Lake's writer gives."
)
FILES = (
    "Delta Lake loads the list of all active files when a table is opened. dagflow does not: listing them is a walk of its own."
)
MISSING = "Delta Lake: n/a (pip install 'dagflow[bench]')"


UNTIDY = "Delta Lake (syncs nothing), cleanup_expired_logs=False"
DISK = "for scale: a file of ten bytes written and synced"


def cases(disk: Path, quick: bool) -> Iterator[Case]:
    """All cases; a case's logs are as long as its title says while it runs."""
    logs = {length: _logs(disk, length) for length in (QUICK if quick else LENGTHS)}
    for length, each in logs.items():
        for log in each:
            began = perf_counter()
            log.build(length - 2 if length >= 100 else length)
            say(f"built {log.commits:,} commits of {log.name} in {perf_counter() - began:.0f} s")
    long = {length: each for length, each in logs.items() if length >= 100}
    for length, each in long.items():
        yield _resumed(each, length, slow=True)
    if len(long) > 1:
        yield _flat(long)
    for each in long.values():
        for log in each:
            log.append(2)
    for length, each in logs.items():
        yield _resumed(each, length)
    yield _flat(logs)
    yield _counted(logs, "Objects read to resume; listings of folders count as one", "objects", lambda r: r.objects + r.listings)
    yield _counted(logs, "Bytes read to resume", "bytes", lambda r: r.size)
    for length, each in logs.items():
        yield _commits(disk, each, length, 10 if quick else 5 if length > LONG else 100)


def _logs(disk: Path, length: int) -> list[Log]:
    peers: list[Log] = [DeltaLog(disk / f"delta-{length}")] if is_there() else []
    return [*peers, *(OurLog(disk / f"ours-{length}-{durable}", durable) for durable in (False, True))]


def _resumed(logs: Sequence[Log], length: int, slow: bool = False) -> Case:
    commits = logs[0].commits
    when = ": just before the next checkpoint of Delta Lake, and at the end of a folder of dagflow's" if slow else ""
    goals = [Goal(log.name, DeltaLog.name, least=1) for log in logs[1:]] if length >= 1_000 else []
    return Case(
        f"resume {length}{' slow' if slow else ''}",
        f"Opened and resumed after {commits:,} commits{when}",
        [Contestant(log.name, _resuming(log), log.resume, os.sync) for log in logs],
        goals if is_there() else (),
        unit="ms",
        notes=_notes(FILES),
    )


def _flat(logs: dict[int, list[Log]]) -> Case:
    ours = [log for each in logs.values() for log in each if isinstance(log, OurLog)]
    names = [f"{log.name}, {log.commits:,} commits" for log in ours]
    commits = ", ".join(f"{each[0].commits:,}" for each in logs.values())
    return Case(
        f"flat {commits}",
        f"Opened and resumed, one length beside the other: {commits}",
        [Contestant(name, _resuming(log), clean=os.sync) for name, log in zip(names, ours, strict=True)],
        [Goal(names[-2], names[0], most=FLAT), Goal(names[-1], names[1], most=FLAT)],
        unit="ms",
    )


def _counted(logs: dict[int, list[Log]], title: str, unit: str, count: Callable[[Read], int]) -> Case:
    contestants = []
    for length, each in logs.items():
        for log in each[:-1]:  # durable or not, the same is read
            name = "dagflow" if isinstance(log, OurLog) else "Delta Lake"
            contestants.append(Contestant(f"{name}, {length:,} commits", lambda log=log: float(count(log.read()))))
    notes = _notes("dagflow's are counted by a store that counts, Delta Lake's by what its protocol has a reader read.")
    return Case(unit, title, contestants, unit=unit, notes=notes, rounds=1, warm_up=0)


def _commits(disk: Path, logs: Sequence[Log], length: int, count: int) -> Case:
    contestants, means = [], []
    writers: list[tuple[str, Append]] = [(log.name, log.append) for log in logs]
    if isinstance(logs[0], DeltaLog):
        writers.insert(1, (UNTIDY, partial(logs[0].append, tidy=False)))
    for name, append in writers:
        taken: list[float] = []
        contestants.append(Contestant(name, _committing(append, count, taken), clean=os.sync))
        means.append(Contestant(f"{name}, mean", lambda taken=taken: fmean(taken) * 1000))
    is_whole = count >= 100  # a round has one checkpoint of Delta Lake's
    notes = [f"Each round: {count} commits by one writer, their median.", SYNCED]
    if is_whole:
        notes.append("The rows of means are of the same commits: one in a hundred makes a checkpoint of Delta Lake's.")
    ours = logs[-1].name
    return Case(
        f"commit {length}",
        f"A commit after {length:,}",
        [*contestants, *(means if is_whole else []), Contestant(DISK, _syncing(disk, count), clean=os.sync)],
        [Limit(ours, COMMIT, "ms")],
        unit="ms",
        notes=_notes(*notes),
    )


def _notes(*notes: str) -> Sequence[str]:
    return notes if is_there() else (*notes, MISSING)


def _resuming(log: Log) -> Callable[[], float]:
    def resume() -> float:
        taken = []
        for _ in range(RESUMES):
            began = perf_counter()
            log.resume()
            taken.append(perf_counter() - began)
        return median(taken) * 1000

    return resume


def _syncing(disk: Path, count: int) -> Callable[[], float]:
    def sync() -> float:
        taken = []
        for number in range(count):
            began = perf_counter()
            data_file(disk, number)
            taken.append(perf_counter() - began)
        return median(taken) * 1000

    return sync


def _committing(append: Append, count: int, taken: list[float]) -> Callable[[], float]:
    def commit() -> float:
        taken[:] = append(count)
        return median(taken) * 1000

    return commit
