"""The command of the harness: `python -m tests.faults --help`. `harness.py` describes it."""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import attrs

from tests.faults import shim
from tests.faults.applications import APPLICATIONS, import_all
from tests.faults.harness import DURABILITIES, FAULTS, Harness, cases, show
from tests.faults.servers import Servers


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--shift", default="1/1", help="run the cases of one of several shifts, I/N")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the cases, and of what a power cut leaves")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after that time")
    parser.add_argument("--each", type=int, default=0, help="so many cases of each application, durability and fault; 0: all")
    parser.add_argument("--application", action="append", choices=APPLICATIONS, help="only this one; may be repeated")
    parser.add_argument("--durability", action="append", choices=DURABILITIES, help="only this one")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only this one; may be repeated")
    parser.add_argument("--call", type=int, action="append", help="only at this call; may be repeated")
    parser.add_argument("--keep", type=Path, help="the folder for what a wrong case leaves")
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    return parser.parse_args()


def main() -> int:
    """Run the cases, print the totals, and return 1 if anything was lost, doubled or stuck."""
    wanted = arguments()
    if reason := shim.unsupported():
        show(f"no faults here: {reason}")
        return 2
    if not hasattr(ctypes.CDLL(None), "faults_arm"):
        with tempfile.TemporaryDirectory(prefix="dagflow-faults-") as folder:
            preload = {**os.environ, shim.PRELOAD: str(shim.compiled(Path(folder)))}
            return os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-m", "tests.faults", *sys.argv[1:]], preload)
    library = os.environ.pop(shim.PRELOAD)  # not for servers
    shift, shifts = map(int, wanted.shift.split("/"))
    begin, rng = time.monotonic(), random.Random(wanted.seed)
    import_all()
    gc.freeze()
    with tempfile.TemporaryDirectory(prefix="dagflow-faults-", ignore_cleanup_errors=True) as folder, Servers() as servers:
        harness = Harness(Path(folder), library, servers, wanted.seed, wanted.keep)
        chosen = []
        for application in (APPLICATIONS[name] for name in wanted.application or APPLICATIONS):
            for durability in wanted.durability or DURABILITIES:
                everything = list(cases(application, durability, harness.survey(application, durability)))
                for fault in wanted.fault or FAULTS:
                    some = [case for case in everything if case.fault == fault and case.call in (wanted.call or [case.call])]
                    chosen += rng.sample(some, min(wanted.each or len(some), len(some)))
        rng.shuffle(chosen)
        mine = chosen[shift - 1 :: shifts]
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            for number, case in enumerate(mine):
                if time.monotonic() - begin > wanted.seconds:
                    show(f"the time is over after {number} of {len(mine)} cases")
                    break
                known = len(harness.totals.wrong)
                harness.run(case)
                for each in harness.totals.wrong[known:]:
                    show(f"WRONG {each}")
        except KeyboardInterrupt:
            show("stopped: the totals are those of the cases before")
    print(json.dumps(attrs.asdict(harness.totals)) if wanted.json else "\n".join(harness.totals.report()))
    return 1 if harness.totals.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
