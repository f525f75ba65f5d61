"""The settings of a run: what every application can be told."""

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
    """where the parallel part runs: on Spark, or in this process, without a JVM"""

    master: str | None = attrs.field(default=None, validator=not_empty)
    """Spark's master; none: what the environment says, else local[*,4]"""

    remote: str | None = attrs.field(default=None, validator=not_empty)
    """address of a Spark Connect server (sc://host:port)"""

    slots_timeout: Seconds = attrs.field(default=300.0, validator=positive)
    """how long a launch waits for the first free slot of a cluster"""

    run_folder: str | None = None
    """folder for the window log, reports and staging; driver and tasks must both see it; none: beside the output"""

    window: Seconds | None = attrs.field(default=None, validator=positive)
    """how long a window may stay open; none: no limit with --once, 500ms with --continuous"""

    max_windows: int | None = attrs.field(default=None, validator=attrs.validators.optional(_at_least_one))
    """the run ends after this many windows"""

    windows_in_flight: int = attrs.field(default=2, validator=_at_least_one)
    """how many windows may run at once; they are decided in order"""

    durability: Literal["machine", "process"] = "machine"
    """what a window survives once it is decided: machine (a power cut) or process (a killed process only, faster)"""

    fresh: bool = False
    """starts over instead of continuing where the last run ended"""

    continuous: bool = False
    """goes on waiting for new input; otherwise the run ends when all input is read"""

    rebalance: Literal["auto", "yield", "off"] = "auto"
    """auto: readers that are done take over work of slower ones; yield: by further jobs, for run folders on slow mounts; off"""

    progress: Literal["auto", "plain", "none", "json"] = "auto"
    """how progress is shown; auto: live on a terminal, plain lines elsewhere"""

    window_attempts: int = attrs.field(default=3, validator=_at_least_one)
    """how often a window is tried from its plan before the run fails"""

    retry_delay: Seconds = attrs.field(default=1.0, validator=not_negative)
    """how long to wait before trying again what may pass; twice as long each time, a minute at the most"""

    retain_windows: int = attrs.field(default=1000, validator=_at_least_one)
    """how many finished windows keep their plan and decision in the run folder, for trace and replay; the ledger keeps all"""

    shared_paths: bool = False
    """the local paths of this application are seen by all machines of the cluster (NFS, say)"""

    enforce_immutability: bool = False
    """for tests: the run ends when an operator changes a record that it has received or emitted; slow, each record is copied"""

    name: str | None = None
    """the application's name in reports and in Spark's UI; none: that of its folder or module"""

    def __attrs_post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise ValueError("master and remote exclude each other")


RUN_NAMES: tuple[str, ...] = tuple(attribute.name for attribute in attrs.fields(RunSettings))
RENAMED = {"keep_windows": "retain_windows"}
"""Old names of settings, which still work and warn."""
