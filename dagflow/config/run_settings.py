"""The settings of a run, which all applications have."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from dagflow.config.values.units import Seconds
from dagflow.logs import level_name, level_names
from dagflow.model.operator.validators import integer_from, not_empty, not_negative, positive

_at_least_zero, _at_least_one = integer_from(0), integer_from(1)
_port = attrs.validators.and_(integer_from(0), attrs.validators.le(65535))


def _at_least_a_second(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 1 <= value < float("inf"):
        raise ValueError(f"{attribute.name} is {value!r}, but must be a second or more: it is renewed three times in that time")


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

    package: bool = False
    """on a cluster: send the libraries that the application needs along, for executors that have nothing but Python and Spark"""

    package_lock: str | None = attrs.field(default=None, validator=not_empty)
    """lock file of the package's libraries (exact versions: requirements.txt, pylock.toml, uv.lock); none: those installed"""

    package_with: tuple[str, ...] = ()
    """further installed libraries for the package: those that no import statement of the application names"""

    package_folder: str | None = attrs.field(default=None, validator=not_empty)
    """folder that all machines see, as over NFS, for packages: each machine unpacks one once; none: Spark sends it each time"""

    run_folder: str | None = None
    """folder of plans, decisions and reports; driver and tasks must both see it; none: _dagflow in the output"""

    window: Seconds | None = attrs.field(default=None, validator=positive)
    """longest time that a window stays open; none: no limit with --once, 500ms with --continuous"""

    every: Seconds | None = attrs.field(default=None, validator=attrs.validators.optional(not_negative))
    """with --continuous: time between two emission points, at which changing results reach sinks; 0 and none: each window"""

    max_windows: int | None = attrs.field(default=None, validator=attrs.validators.optional(_at_least_one))
    """end the run after this many windows"""

    windows_in_flight: int = attrs.field(default=2, validator=_at_least_one)
    """maximum of windows that run at once; they are committed in order"""

    lock_lease: Seconds = attrs.field(default=60.0, validator=_at_least_a_second)
    """in object stores: another host may take over from a launch that has not renewed its hold on the run folder for so long"""

    durability: Literal["machine", "process"] = "machine"
    """what a committed window survives: machine: a power cut; process: a killed process only, which is faster"""

    fresh: bool = False
    """forget earlier launches, remove the files that they wrote, and start over; tables keep their rows"""

    final: bool = False
    """take all input as one window and keep nothing, which is quicker; it is the only launch of its run"""

    reject_window: int | None = attrs.field(default=None, validator=attrs.validators.optional(_at_least_zero))
    """leave out this window, which is decided and which a sink cannot publish; an earlier launch has shown what that loses"""

    continuous: bool = False
    """wait for new input, and run until stopped; otherwise the run ends when all input is read"""

    rebalance: Literal["auto", "yield", "off"] = "auto"
    """balancing within a window; auto: idle readers steal work from busy ones; yield: by further jobs, for slow mounts; off"""

    progress: Literal["auto", "plain", "none", "json"] = "auto"
    """form of the progress on standard error; auto: live on a terminal, plain elsewhere"""

    metrics_port: int | None = attrs.field(default=None, validator=attrs.validators.optional(_port))
    """serve metrics for Prometheus on this port; 0: a free one, which is printed; needs dagflow[metrics]"""

    metrics_address: str | None = attrs.field(default=None, validator=not_empty)
    """address of metrics_port; none: 127.0.0.1; other machines can read the metrics at 0.0.0.0, without a password"""

    metrics_file: str | None = attrs.field(default=None, validator=not_empty)
    """write metrics to this file, NAME.prom, every 5 seconds and at the end, for node_exporter; needs dagflow[metrics]"""

    opentelemetry: Literal["auto", "on", "off"] = "auto"
    """spans and metrics for OpenTelemetry; auto: where the environment names an endpoint or an exporter (OTEL_…)"""

    openlineage: Literal["auto", "on", "off"] = "auto"
    """run events for OpenLineage; auto: where the environment or openlineage.yml names a transport (OPENLINEAGE_…)"""

    log_format: Literal["text", "json"] = "text"
    """form of log lines on standard error; json: one object per line, and the run's events instead of progress"""

    log_level: str = attrs.field(default="WARNING", validator=level_name)
    """lowest level of log records that are shown: DEBUG, INFO, WARNING, ERROR or CRITICAL"""

    log_levels: dict[str, str] = attrs.field(factory=dict, validator=level_names)
    """levels of loggers by name: {myapp = "DEBUG", "urllib3" = "ERROR"}"""

    timings: bool = False
    """print at the end where the time went: application, session, first task, windows, roll-forward"""

    window_attempts: int = attrs.field(default=3, validator=_at_least_one)
    """attempts of a window before the run fails, if its failures are transient"""

    retry_delay: Seconds = attrs.field(default=1.0, validator=not_negative)
    """pause before a transient failure is retried; it doubles each time, up to a minute"""

    retain_windows: int = attrs.field(default=1000, validator=_at_least_one)
    """finished windows that trace and replay can still read, with the state that they began with; the ledger keeps all"""

    shared_paths: bool = False
    """all machines of the cluster see the local paths of this application, as over NFS"""

    enforce_immutability: bool = False
    """for tests: end the run when an operator changes a record that it has received or emitted; slow, each record is copied"""

    name: str | None = None
    """the application's name in reports and in Spark's UI; none: that of its folder or module"""

    def __attrs_post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise ValueError("master and remote exclude each other")
        if self.metrics_address is not None and self.metrics_port is None:
            raise ValueError("metrics_address does nothing without metrics_port; add --metrics-port 9464, or leave it out")
        if self.final and self.continuous:
            raise ValueError("final and continuous exclude each other: a continuous launch continues with what it keeps")


RUN_NAMES: tuple[str, ...] = tuple(attribute.name for attribute in attrs.fields(RunSettings))
