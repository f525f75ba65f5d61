"""Kills launches at their requests to S3, before the server has a request or once it has answered, and lets others resume there.

`python -m tests.storage.s3.crash PROXY BUCKET STRIDE APPLICATION`; prints one line of JSON. A process of its own, which forks one
child a launch, as `tests.conformance.faults.crash` does on disks. The proxy kills.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import sys
from typing import Any

from s3fs import S3FileSystem

from tests.conformance.faults.crash import APPLICATIONS, filters
from tests.storage.s3 import oracle, servers

# Paths are strings here: a Path would take a slash from a URL.
POPULATE: Any = APPLICATIONS.get(sys.argv[-1], filters)


def run_here(source: str, output: str) -> None:
    """Launch in this process."""
    from dagflow.testing import run_dag

    made = POPULATE(source, output)
    populate_dag, settings = made if isinstance(made, tuple) else (made, {})
    run_dag(populate_dag, settings, windows_in_flight=2)


def run(proxy: str, source: str, output: str, kill: tuple[int, bool] | None) -> int:
    """Launch in a child, which is killed at a request; return its exit status, -9 if it was killed."""
    S3FileSystem.clear_instance_cache()  # no connection is left to the child
    gc.collect()
    ready, go = os.pipe()
    child = os.fork()
    if child:
        if kill is not None:
            servers.ask(proxy, "POST", f"/-/kill?pid={child}&at={kill[0]}&after={int(kill[1])}")
        os.write(go, b"!")
        os.close(go)
        os.close(ready)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        servers.ask(proxy, "POST", "/-/spare")
        return status
    try:
        os.read(ready, 1)
        run_here(source, output)
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  # whatever ends it is told to the test
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)


def main(proxy: str, bucket: str, stride: int) -> dict[str, Any]:
    """Kill at every request of that stride, and look at what the next launch makes of it."""
    source = f"s3://{bucket}/in"
    for name in "ab":
        oracle.put(f"{source}/{name}.txt", "".join(f"{name}{n}\n.{n}\n" for n in range(2)).encode())
    run_here(source, f"s3://{bucket}/reference")  # here, so that the children find everything imported
    expected = oracle.lines(f"s3://{bucket}/reference")
    problems: list[str] = []
    cases = 0
    for at in itertools.count(0, stride):
        is_after = at // stride % 2 == 1 if stride > 1 else None
        was_killed = False
        for when in (False, True) if is_after is None else (is_after,):
            output = f"s3://{bucket}/out{at}{when}"
            was_killed = run(proxy, source, output, (at, when)) == -signal.SIGKILL
            if status := run(proxy, source, output, None):
                problems.append(f"the launch after a kill at request {at} (after it: {when}) ended with {status}")
            problems += [f"killed at request {at} (after it: {when}): {each}" for each in oracle.wrong(output, expected)]
            cases += was_killed
        if not was_killed:
            return {"cases": cases, "lines": sum(expected.values()), "wrong": problems}
    raise AssertionError("unreachable")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
