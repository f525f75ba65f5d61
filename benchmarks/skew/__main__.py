"""`python -m benchmarks.skew`: runs the cases and prints the tables."""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.lines.ours import remove
from benchmarks.lines.peers import Spark
from benchmarks.rounds import Case, Contestant, Goal
from benchmarks.skew.peer import Speculating
from benchmarks.skew.work import INPUTS, Input, run

MARK = "skew measured"
SLOTS = 2
MANY = 40  # tasks of the over-partitioned peer
TITLES = {
    "slow": "One block in 40 costs 30 times the others",
    "keyed": "One block in 40 costs 30 times the others, before records are counted by key",
    "huge": "One file of 90 % of the bytes, in one block, among 20 small ones",
    "last": "All the work is in the last of 40 blocks",
    "turn": "One block of quick lines and then slow ones, read in one go",
    "even": "Even work",
    "windows": "Small windows of 8 readers on 2 slots",
    "small": "Files of 50 KB, even work",
}
GOAL_OF_EVEN = Goal("dagflow", "static blocks", most=1.03)


def cases(folder: Path, quick: bool, only: Sequence[str], speculating: Speculating) -> Iterator[Case]:
    """The cases; their inputs are made when they come."""
    for name in only:
        made = INPUTS[name](folder / name, 0.02 if quick else 0.1)
        yield case(name, made, folder / f"{name}-out", speculating)


def case(name: str, made: Input, output: Path, speculating: Speculating) -> Case:
    """Static blocks, many tasks with speculation, dagflow, and the ideal, on two slots."""
    clean = functools.partial(remove, output)
    check = functools.partial(lines_in, output)
    one = functools.partial(run, made.folder, made.block_size, output, counts=made.counts)

    def ideal() -> float:
        """Return the seconds of the same job without the work, plus those of the work on all slots."""
        began = time.perf_counter()
        one(readers=SLOTS, rebalance="off", share=0.0)
        return time.perf_counter() - began + made.seconds / SLOTS

    def speculate() -> float:
        return speculating.run(made, output, MANY)

    def timed(rebalance: str) -> None:
        one(readers=made.readers, rebalance=rebalance, blocks=made.blocks)

    ours = [
        Contestant("static blocks", functools.partial(timed, "off"), check, clean),
        Contestant("dagflow", functools.partial(timed, "auto"), check, clean),
    ]
    if not made.seconds:
        return Case(name, TITLES[name], ours, [GOAL_OF_EVEN])
    contestants = [
        ours[0],
        Contestant("40 tasks, Spark's speculation", speculate, check, clean),
        ours[1],
        Contestant("ideal", ideal, check, clean),
    ]
    goal = GOAL_OF_EVEN if name == "even" else Goal("dagflow", "ideal", most=1.15)
    return Case(name, TITLES[name], contestants, [goal])


def lines_in(output: Path) -> tuple[tuple[bytes, int], ...]:
    """Return each line of the output, and how often it occurs."""
    files = [path for path in output.iterdir() if path.is_file() and path.name[0] not in "._"]
    found = Counter(line for path in files for line in path.read_bytes().splitlines())
    return tuple(sorted(found.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("skew", "Uneven work: static, speculation and rebalancing, in turn, in one go.")
    parser.add_argument("--only", action="append", choices=list(INPUTS), help="run this case; may be given again")
    given = parser.parse_args(arguments)
    told = report.Report(given, MARK, report.typed("skew", arguments))
    spark, speculating = Spark(f"local[{SLOTS}]"), Speculating()
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as folder:
        try:
            _ = spark.session
            for each in cases(Path(folder), given.quick, given.only or list(INPUTS), speculating):
                told.run(each)
        finally:
            speculating.close()
            spark.close()
    return told.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
