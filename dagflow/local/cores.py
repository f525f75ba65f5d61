"""The number of cores that this process may use."""

from __future__ import annotations

import math
import os

_CGROUPS = "/sys/fs/cgroup"


def available_cores() -> int:
    """Return the number of cores that this process may use: by its affinity, and by the quota of its container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    quota = quota_of(_CGROUPS)
    return max(1, cores if quota is None else min(cores, quota))


def quota_of(folder: str) -> int | None:
    """Return the quota of the control group at `folder` in cores, rounded up; None without one.

    A container sees its own group there, of version 2 (`cpu.max`) or 1 (`cpu/cpu.cfs_quota_us`).
    """
    words = _words(os.path.join(folder, "cpu.max"))
    if not words:
        old = os.path.join(folder, "cpu", "cpu.cfs_")
        words = [*_words(f"{old}quota_us"), *_words(f"{old}period_us")]
    if len(words) != 2 or not words[0].isdigit() or not words[1].isdigit() or not int(words[1]):
        return None  # "max" in version 2, -1 in version 1
    return math.ceil(int(words[0]) / int(words[1]))


def _words(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []
