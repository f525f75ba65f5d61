"""Publishing by several processes, some of which are killed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from dagflow.storage import LocalStore

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
SIZE = 300_000


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)


RACER = """
import json, sys
from dagflow.storage import LocalStore
folder, number, count, durable = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True"
store = LocalStore(folder, durable=durable)
print("ready", flush=True)
sys.stdin.readline()
won, seen = [], []
for name in range(count):
    if store.create(f"claims/{name}", b"%d:%d" % (number, name) * 50):
        won.append(name)
    seen.append(store.read(f"claims/{name}").decode())
print(json.dumps([won, seen]), flush=True)
"""


@pytest.mark.parametrize(("durable", "count"), [(False, 1000), (True, 100)])
def test_of_several_processes_exactly_one_wins(tmp_path, durable, count):
    racers = [start(RACER, tmp_path, number, count, durable) for number in range(4)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [json.loads(racer.communicate(timeout=60)[0]) for racer in racers]
    for name in range(count):
        winners = [number for number, (won, _) in enumerate(answers) if name in won]
        assert len(winners) == 1
        assert {seen[name] for _, seen in answers} == {f"{winners[0]}:{name}" * 50}
    assert len({number for number, (won, _) in enumerate(answers) if won}) > 1, "they did not race"


WRITER = """
import hashlib, sys
from dagflow.storage import LocalStore
store = LocalStore(sys.argv[1], durable=sys.argv[2] == "True")
number = len(store.names("log/"))
print("ready", flush=True)
while True:
    body = hashlib.sha256(b"%d" % number).digest() * (int(sys.argv[3]) // 32)
    store.create(f"log/{number:06d}", hashlib.sha256(body).digest() + body)
    print(number, flush=True)
    number += 1
"""


@pytest.mark.chaos
@pytest.mark.parametrize("durable", [False, True])
def test_a_killed_writer_leaves_whole_records_only(tmp_path, durable):
    moments = random.Random(97)
    reported = -1
    for _ in range(6):
        writer = start(WRITER, tmp_path, durable, SIZE)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0.001, 0.05))
        writer.kill()
        out, _ = writer.communicate()
        told = [int(number) for number in out.split()]
        reported = max([reported, *told])
        store = LocalStore(str(tmp_path))
        names = store.names("log/")
        # Whatever was reported is there; of this writer at most one more, whose report was not written. A writer of which
        # no report was heard may have left one too.
        assert len(names) > reported
        assert not told or len(names) in (max(told) + 1, max(told) + 2)
        for number, name in enumerate(names):
            data = store.read(name)
            assert name == f"log/{number:06d}"
            assert data[:32] == hashlib.sha256(data[32:]).digest()
    assert reported > 0
    LocalStore(str(tmp_path)).sweep(before=float("inf"))
    assert len(os.listdir(tmp_path / "log")) == len(names)


# Each kills the process at one point of one `create`; afterwards the record is there or not.
POINTS = {
    "before the temporary file": ("open", False, False),
    "after the temporary file": ("open", True, False),
    "before writing": ("write", False, False),
    "in the middle of writing": ("half", True, False),
    "after writing": ("write", True, False),
    "after syncing, before the link": ("link", False, False),
    "after the link": ("link", True, True),
    "before the temporary name goes": ("unlink", False, True),
    "before the folder is synced": ("unlink", True, True),
}

VICTIM = """
import os, signal, sys
from dagflow.storage import LocalStore
folder, call, after = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
store = LocalStore(folder)
store.create("log/0", b"before")
if call == "half":
    call, write = "write", os.write
    os.write = lambda descriptor, data: write(descriptor, data[:1000])
real = getattr(os, call)
def die(*arguments, **keywords):
    if after:
        real(*arguments, **keywords)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, call, die)
store.create("log/1", b"x" * 100_000)
"""


@pytest.mark.chaos
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_point(tmp_path, point):
    call, after, there = POINTS[point]
    victim = start(VICTIM, tmp_path, call, after)
    victim.communicate()
    assert victim.returncode == -signal.SIGKILL
    store = LocalStore(str(tmp_path))
    assert store.names() == (["log/0", "log/1"] if there else ["log/0"])
    assert store.read("log/1") == (b"x" * 100_000 if there else None)
    assert store.create("log/1", b"again") is not there
    assert store.sweep(before=float("inf")) <= 1
    assert sorted(os.listdir(tmp_path / "log")) == ["0", "1"]
