"""Real processes, killed at each step of an append: nothing is lost or doubled when another goes on. Numbers: the fault cases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dagflow.ledger import Ledger, fold, hash_bytes, schema_hash
from tests.ledger.chains import SCHEMA, txn

STEPS = [
    "1 before any write",
    "5 during the temporary file",
    "6 before the link",
    "7 after the link",
    "7 before the hint",
    "8 before the return",
]


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def arm(ledger, step):
    """From here on, the process dies at a step."""
    write, link, note = os.write, os.link, ledger._tail.note
    if step == "1 before any write":
        die()
    if step == "5 during the temporary file":
        os.write = lambda descriptor, data: (write(descriptor, data[: len(data) // 2]), die())
    if step == "6 before the link":
        os.link = die
    if step == "7 after the link":
        os.link = lambda *names: (link(*names), die())
    if step == "7 before the hint":
        ledger._tail.note = die
    if step == "8 before the return":
        ledger._tail.note = lambda ref: (note(ref), die())


def write_windows(folder, step=None):
    """Commits windows 0 to 4; knows nothing of a process before it."""
    ledger = Ledger.open(folder, durable=False)
    for window in range(5):
        content = b"%d\n" % window
        Path(folder, f"part-{window}.txt").write_bytes(content)
        if step is not None and window == 2:
            arm(ledger, step)
        state = ledger.resume()
        data = state.data_slice([(f"part-{window}.txt", 1, 2, hash_bytes(content))], schema_hash=schema_hash(SCHEMA))
        ledger.append(state.add_data(txn(window, attempt=str(os.getpid())), data))


@pytest.mark.chaos
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step(folder, step):
    Ledger.create(folder, dataset_id="d", durable=False).append(SCHEMA)
    code = f"from tests.ledger.test_kill import write_windows; write_windows({folder!r}, {step!r})"
    root = Path(__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert Ledger.open(folder).head().seq == (4 if step[0] in "78" else 3)
    write_windows(folder)
    ledger = Ledger.open(folder)
    entries = list(ledger.entries())
    assert [entry.data.txn.window_id for entry in entries if entry.data is not None] == [0, 1, 2, 3, 4]
    assert ledger.verify().problems == ()
    assert ledger.resume() == fold(entries)
    assert ledger.resume().next_offset == 5
    assert len(ledger.store.names("ledger-hint/")) == 1
