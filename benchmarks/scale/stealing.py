"""The reads of readers that look for work at each other's."""

from __future__ import annotations

import json
import os
import tempfile
import time

import attrs

from dagflow.runtime.rebalancing.ownership_log import START, Entry, OwnershipLog, TaskLog
from dagflow.runtime.rebalancing.peers import PeerView, gauge_of
from dagflow.runtime.run_folder.layout import CLAIM, stage_area, task_name
from dagflow.storage import LocalStore
from dagflow.testing import FakeClock
from dagflow.testing.stores import CountingStore

AREA = stage_area(CLAIM, 0, "r", "s0")


@attrs.frozen
class Looks:
    """The reads and seconds of an idle reader's looks at all others: of the first one, and of those after it."""

    readers: int
    first: tuple[int, float]
    later: tuple[int, float]


def looks(readers: int) -> Looks:
    """Let one of many readers look at the others, all of which are at work."""
    with tempfile.TemporaryDirectory(prefix="dagflow-scale-") as folder:
        store = CountingStore(LocalStore(folder, durable=False))
        for number in range(1, readers):
            TaskLog(store.inner, task_name(AREA, number)).append(Entry(kind=START, attempt="1"))
            gauge = gauge_of(folder, AREA, number)
            gauge.write(json.dumps({"by": "1", "left": 1.0}).encode())
            gauge.close()
        own = OwnershipLog(store, AREA, partition=0, partitions=readers, attempt="1", assigned={})
        clock = FakeClock()  # gauges that do not change for two seconds would be those of dead tasks
        view = PeerView(store, os.fspath(folder), AREA, "claims/wanted", own, readers, clock)
        found = []
        for _ in range(2):
            store.reset()
            began = time.process_time()
            peers = view.look(0.0)
            seconds = time.process_time() - began
            assert all(peer.state == "working" for peer in peers)
            found.append((store.counts["read"] + len(peers), seconds))
    return Looks(readers, found[0], found[1])
