"""Random DAGs, as many as there is time for: `python -m tests.laws --count 50000 --seed 0`."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter

from tests.laws.cases import random_case
from tests.laws.oracle import connected
from tests.laws.trial import smaller, wrong_with


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="the number of DAGs")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no DAG after that time")
    parser.add_argument("--slots", type=int, default=1, help="the most processes of a launch: half of them have one")
    parser.add_argument("--runner", choices=("local", "spark"), default="local")
    parser.add_argument("--servers", action="store_true", help="with sinks that take longer: Iceberg and PostgreSQL")
    parser.add_argument("--smaller", type=int, default=0, help="try so many smaller DAGs for each that is wrong")
    parser.add_argument("--stop-after", type=int, default=20, help="stop when so many are wrong")
    return parser.parse_args()


def main() -> int:
    """Try the DAGs. Print each that is wrong, with its seed, and return 1 if there is any."""
    wanted = arguments()
    database, begin, kinds, wrong, tried = connected(), time.monotonic(), Counter[str](), 0, 0
    gc.freeze()
    for seed in range(wanted.seed, wanted.seed + wanted.count):
        if time.monotonic() - begin > wanted.seconds or wrong >= wanted.stop_after:
            break
        case = random_case(seed, max_slots=wanted.slots, servers=wanted.servers)
        tried += 1
        kinds.update(node.kind for node in case.nodes)
        if found := wrong_with(case, database, wanted.runner):
            wrong += 1
            print(f"WRONG --seed {seed}", *found, sep="\n  ", flush=True)
            if wanted.smaller:
                small = smaller(case, lambda each: bool(wrong_with(each, database, wanted.runner)), wanted.smaller)
                print("smaller:", small, *wrong_with(small, database, wanted.runner), sep="\n  ", flush=True)
    seconds = time.monotonic() - begin
    print(f"{tried} DAGs, {wrong} wrong, in {seconds:.0f} s: {dict(sorted(kinds.items()))}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
