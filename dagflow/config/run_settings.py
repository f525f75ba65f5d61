"""The settings of a run, which all applications have."""

from __future__ import annotations

from typing import Literal

import attrs

from dagflow.config.values.units import Seconds
from dagflow.model.operator.validators import integer_from, not_empty, not_negative, positive

_at_least_one = integer_from(1)


@attrs.frozen(kw_only=True)
class RunSettings:
    """The settings of a run. Each has an option of the command line too: `--window 500ms`.

    >>> RunSettings(runner="local").windows_in_flight
    2
    """

    runner: Literal["spark", "local"] = "spark"
    """where readers and the operators after them run: on Spark, or on this machine without a JVM"""

    slots: int | None = attrs.field(default=None, validator=attrs.validators.optional(_at_least_one))
    """how many processes the local runner uses, each for a task; 1: the launch's own; none: one for each core, from Python 1"""

    master: str | None = attrs.field(default=None, validator=not_empty)
    """Spark's master; none: what the environment says, else local[*,4]"""

    remote: str | None = attrs.field(default=None, validator=not_empty)
    """address of a Spark Connect server (sc://host:port)"""

    class_archive: Literal["auto", "use", "off"] = "auto"
    """archive of Spark's classes in your cache folder, for quick starts; auto: used, made in the background; use: only used"""

    slots_timeout: Seconds = attrs.field(default=300.0, validator=positive)
    """longest wait for the first free slot of a cluster"""

    run_folder: str | None = None
    """folder of plans, decisions and reports; driver and tasks must both see it; none: _dagflow in the output"""

    window: Seconds | None = attrs.field(default=None, validator=positive)
    """longest time that a window stays open; none: no limit with --once, 500ms with --continuous"""

    max_windows: int | None = attrs.field(default=None, validator=attrs.validators.optional(_at_least_one))
    """end the run after this many windows"""

    windows_in_flight: int = attrs.field(default=2, validator=_at_least_one)
    """maximum of windows that run at once; they are committed in order"""

    durability: Literal["machine", "process"] = "machine"
    """what a committed window survives: machine: a power cut; process: a killed process only, which is faster"""

    fresh: bool = False
    """forget earlier launches, remove the files that they wrote, and start over"""

    continuous: bool = False
    """wait for new input, and run until stopped; otherwise the run ends when all input is read"""

    rebalance: Literal["auto", "yield", "off"] = "auto"
    """balancing within a window; auto: idle readers steal work from busy ones; yield: by further jobs, for slow mounts; off"""

    progress: Literal["auto", "plain", "none", "json"] = "auto"
    """form of the progress on standard error; auto: live on a terminal, plain elsewhere"""

    timings: bool = False
    """print at the end where the time went: application, session, first task, windows, roll-forward"""

    window_attempts: int = attrs.field(default=3, validator=_at_least_one)
    """attempts of a window before the run fails, if its failures are transient"""

    retry_delay: Seconds = attrs.field(default=1.0, validator=not_negative)
    """pause before a transient failure is retried; it doubles each time, up to a minute"""

    retain_windows: int = attrs.field(default=1000, validator=_at_least_one)
    """finished windows that trace and replay can still read; the ledger keeps all"""

    shared_paths: bool = False
    """all machines of the cluster see the local paths of this application, as over NFS"""

    enforce_immutability: bool = False
    """for tests: end the run when an operator changes a record that it has received or emitted; slow, each record is copied"""

    name: str | None = None
    """the application's name in reports and in Spark's UI; none: that of its folder or module"""

    def __attrs_post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise ValueError("master and remote exclude each other")


RUN_NAMES: tuple[str, ...] = tuple(attribute.name for attribute in attrs.fields(RunSettings))
RENAMED = {"keep_windows": "retain_windows"}
"""Old names of settings, which still work and warn."""
