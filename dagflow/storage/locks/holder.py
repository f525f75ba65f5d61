"""The holder of a run folder, recorded so that another process can tell whether it is alive."""

from __future__ import annotations

import datetime
import json
import os
import socket
from contextlib import suppress
from functools import lru_cache

import attrs

from dagflow.bounded_json import parse


@attrs.frozen
class Holder:
    """A process: different from later ones with the same number by its start, and from those of other machines.

    `machine` names one boot of one machine and, within it, one space of process numbers (containers have their own); `born` is
    the process's start in the kernel's own count. Both are empty where the system does not tell. `lease`: the seconds after which
    a holder that has not renewed may be followed, 0 without a lease. `token`: of one lock, so that its renewals are known.
    """

    pid: int
    host: str
    since: str
    who: str = ""
    machine: str = ""
    born: str = ""
    lease: float = 0.0
    token: str = ""

    @classmethod
    def this_process(cls, *, now: float, who: str = "", lease: float = 0.0, token: str = "") -> Holder:
        """Return this process, as the holder since `now` (seconds since the epoch)."""
        since = datetime.datetime.fromtimestamp(now, tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pid = os.getpid()
        host, machine, born = socket.gethostname(), _machine(), _born(pid)
        return cls(pid=pid, host=host, since=since, who=who, machine=machine, born=born, lease=lease, token=token)

    def is_observable(self) -> bool:
        """Return whether this process can tell if the holder is alive: it is on the same machine, in the same container."""
        return self.host == socket.gethostname() and self.machine == _machine()

    def is_dead(self) -> bool:
        """Return whether the process is certainly gone; False if it lives or cannot be observed from here."""
        if self.host != socket.gethostname():
            return False
        here = _machine()
        if self.machine != here:
            # Another boot of this machine has ended all its processes; another container's cannot be seen. Where folders are
            # shared, two machines may have one name: then it is the lease that tells.
            is_other_boot = bool(self.machine and here) and self.machine.partition(" ")[0] != here.partition(" ")[0]
            return is_other_boot and not self.lease
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):  # it lives, and belongs to another user
            pass
        born = _born(self.pid)
        return bool(self.born and born) and born != self.born

    def to_bytes(self) -> bytes:
        """Return one line of JSON."""
        return json.dumps(attrs.asdict(self), sort_keys=True).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Holder | None:
        """Return the reverse; None for anything else (an empty or half-written file, a newer version's)."""
        with suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError):
            fields = parse(data)
            text = {name: str(fields.get(name, "")) for name in ("host", "since", "who", "machine", "born", "token")}
            return cls(pid=int(fields["pid"]), lease=float(fields.get("lease", 0.0)), **text)
        return None


@lru_cache(maxsize=1)
def _machine() -> str:
    parts = []
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts.append(file.read().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _born(pid: int) -> str:
    with suppress(OSError, IndexError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the program's name in parentheses and may hold anything; the start is field 22.
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):  # dead, and not yet buried by its parent
            return "dead"
        return fields[19].decode()
    return ""
