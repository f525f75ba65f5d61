"""The command line shared by all benchmarks: rounds in a calm moment, tables, goals, and a page written after each case."""

from __future__ import annotations

import argparse
import datetime
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import attrs

from benchmarks import machine, table
from benchmarks.rounds import Case, Result, compete

WATCH = 3.0  # seconds


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """A command line with what all benchmarks are told."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    made.add_argument("--rounds", type=int, default=5, help="rounds that count; one more warms up (5)")
    made.add_argument("--quick", action="store_true", help="everything small, one round: shows that it works, not how fast")
    made.add_argument("--markdown", type=Path, help="write the tables here (between the marks, where the file has them)")
    made.add_argument("--calm", type=float, default=0.2, help="wait until others use at most this share of the processors (0.2)")
    made.add_argument("--patience", type=float, default=0, help="minutes to wait for that at most, in all (0)")
    made.add_argument("--disk", help="a folder on a local disk to work in (that for temporary files)")
    return made


@attrs.define
class Report:
    """Runs cases, and tells what came out.

    Attributes:
        given: of a `parser`.
        mark: of the comments between which `--markdown` writes.
        command: as it was typed.
    """

    given: argparse.Namespace
    mark: str
    command: str
    results: list[Result] = attrs.field(init=False, factory=list)
    _patience: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._patience = self.given.patience * 60.0

    def run(self, case: Case) -> None:
        """Runs a case, prints its table, and writes the page: a run of half an hour may be ended before its time."""
        while self._patience > 0 and machine.busy(WATCH) > self.given.calm:
            self._patience -= WATCH
        self.results.append(compete(case, 1 if self.given.quick else self.given.rounds, say))
        print(f"\n{case.title}\n{table.figures_table(self.results[-1])}", flush=True)
        if self.given.markdown is not None:
            today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
            page = table.page(self.results, self.command, machine.describe(), today)
            write_between(self.given.markdown, page, self.mark)

    def end(self) -> int:
        """Prints the goals. 1 when one is missed (never with --quick), else 0."""
        print("\n" + table.goals_table(self.results))
        outcomes = [result.outcome(goal) for result in self.results for goal in result.case.goals]
        return 0 if self.given.quick or all(outcome is None or outcome[1] for outcome in outcomes) else 1


def typed(name: str, arguments: Sequence[str] | None) -> str:
    """The command as it was typed."""
    return shlex.join(["python", "-m", f"benchmarks.{name}", *(arguments if arguments is not None else sys.argv[1:])])


def marks(mark: str) -> tuple[str, str]:
    """The comments around the part of a page that is written anew."""
    return f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"


def write_between(path: Path, page: str, mark: str) -> None:
    """Writes a page between the marks of a file, or as the file where it has none."""
    begin, end = marks(mark)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, start, rest = text.partition(begin)
    _, stop, after = rest.partition(end)
    path.write_text(f"{before}{start}\n\n{page}\n{stop}{after}" if start and stop else page, encoding="utf-8")


def say(text: str) -> None:
    """Progress, with the load of the machine."""
    print(f"  {text} (load {machine.load():.1f})", file=sys.stderr, flush=True)


def leave_in_order() -> None:
    """A benchmark that is asked to end removes its files first."""

    def leave(number: int, frame: object) -> NoReturn:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
