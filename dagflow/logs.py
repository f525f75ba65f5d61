"""Log records of a run: the fields that say where they come from, and their form as text or as JSON.

Everything logs through the standard `logging`, and loggers keep their names. Only a process of dagflow's own gets handlers: the
command line, and workers that have none. Read in this order: `LogPlace` and `within`, the place in a run; `LogFields`, the filter
that adds it to records; the formatters; `configure`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Literal, TextIO

import attrs

from dagflow.errors.shown import visible_lines, without_secrets

LogFormat = Literal["text", "json"]
EVENTS = "dagflow.run"
"""The logger of a run's events."""
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
DEFAULT_LEVEL = "WARNING"
FIELDS = ("run", "window", "operator", "task")
"""The fields of a place, in the order in which lines show them."""


@attrs.frozen(kw_only=True)
class LogPlace:
    """A place in a run: the launch, the window, the operator in the DAG, the task.

    `at_work`: finds the operator that runs and its window. It is called for a record that is emitted, so that the operators
    themselves do not pay for it.
    """

    run: str | None = None
    window: int | None = None
    operator: str | None = None
    task: str | None = None
    at_work: Callable[[], tuple[str, int | None] | None] = lambda: None


_PLACE: ContextVar[LogPlace | None] = ContextVar("dagflow_log_place", default=None)
_last: LogPlace | None = None  # for threads that user code starts: they have contexts of their own


@contextlib.contextmanager
def within(**changes: Any) -> Iterator[None]:
    """Log from another place for a while: the present one with some fields changed.

    >>> with within(run="r1"), within(window=3):
    ...     fields_now()
    {'run': 'r1', 'window': 3, 'operator': None, 'task': None}
    """
    global _last  # noqa: PLW0603  # of the process
    before = _last
    place = attrs.evolve(_PLACE.get() or LogPlace(), **changes)
    token = _PLACE.set(place)
    _last = place
    try:
        yield
    finally:
        _PLACE.reset(token)
        _last = before


def fields_now() -> dict[str, Any]:
    """Return the fields of the present place; all are None outside a run."""
    place = _PLACE.get() or _last or LogPlace()
    running = place.at_work()
    operator, window = (place.operator, place.window) if running is None else running
    return {
        "run": place.run,
        "window": place.window if window is None else window,
        "operator": operator,
        "task": place.task,
    }


class LogFields(logging.Filter):
    """A filter that gives log records the attributes `run`, `window`, `operator` and `task`, None where they are unknown.

    Add it to a handler of yours, and its format may have `%(window)s`. Records of worker processes come with these attributes.
    What a record has already stays.

    >>> import logging
    >>> record = logging.LogRecord("app", logging.INFO, "app.py", 1, "text", (), None)
    >>> LogFields().filter(record), record.window
    (True, None)
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes. Every record passes."""
        given = vars(record)
        if not all(name in given for name in FIELDS):
            for name, value in fields_now().items():
                given.setdefault(name, value)
        return True


_FIELDS = LogFields()
_STANDARD = {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), *FIELDS, "message", "asctime", "taskName"}


def _exception(record: logging.LogRecord) -> str | None:
    if record.exc_info and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    parts = [record.exc_text, record.stack_info]
    return "\n".join(part for part in parts if part) or None


class TextFormatter(logging.Formatter):
    """A line for people: local time with its offset from UTC, level, logger, message, and the fields that are known.

    An exception follows on lines of its own. Control characters are escaped, and secrets in URLs are masked.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        local = time.localtime(record.created)
        at, zone = time.strftime("%Y-%m-%d %H:%M:%S", local), time.strftime("%z", local)
        known = [f"{name}={value}" for name in FIELDS if (value := getattr(record, name, None)) is not None]
        first, _, more = record.getMessage().partition("\n")
        head = f"{at}.{int(record.msecs):03d}{zone} {record.levelname} {record.name}: {first}"
        lines = [f"{head}  {' '.join(known)}" if known else head, *([more] if more else [])]
        if (exception := _exception(record)) is not None:
            lines.append(exception)
        return visible_lines("\n".join(lines))


class JsonFormatter(logging.Formatter):
    """A JSON object on one line. docs/reference/logs.md describes its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        import json  # only here: `import dagflow.config` does not wait for it

        line: dict[str, Any] = {
            "at": round(record.created, 6),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name, None) for name in FIELDS},
            "exception": _exception(record),
        }
        if extra := {name: value for name, value in vars(record).items() if name not in _STANDARD}:
            line["extra"] = json.loads(json.dumps(extra, default=str, skipkeys=True))
        return json.dumps(without_secrets(line), ensure_ascii=False)


def formatter(form: LogFormat) -> logging.Formatter:
    """Return the formatter of a form."""
    return JsonFormatter() if form == "json" else TextFormatter()


class StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at the moment, since a live display puts something else there."""

    def __init__(self, form: LogFormat, *, events: bool = True) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(formatter(form))
        self.addFilter(LogFields())
        if not events:
            self.addFilter(lambda record: record.name != EVENTS)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """The present standard error."""
        return sys.stderr

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name that logging calls
        """Ignore a closed stream; show other errors as `logging` does."""
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handleError(record)


def write_whole_lines() -> None:
    """Let standard output and standard error of a worker process write whole lines, since several processes share them.

    A `print` of several values writes each by itself where PYTHONUNBUFFERED is set, as Spark does, and is buffered for long else.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def set_levels(levels: Mapping[str, int | str]) -> None:
    """Set the levels of loggers by name; the root's name is empty."""
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level.upper() if isinstance(level, str) else level)


def levels_set() -> dict[str, int]:
    """Return the levels that are set in this process, by the name of the logger; of the root, whose name is empty, always."""
    known = list(logging.root.manager.loggerDict.items())
    loggers = {name: each for name, each in known if isinstance(each, logging.Logger)}
    return {"": logging.root.level, **{name: logger.level for name, logger in loggers.items() if logger.level}}


def configure(form: LogFormat, level: str, levels: Mapping[str, str], *, events: bool) -> None:
    """Configure logging in a process of the command line.

    An application that has given the root logger a level or a handler with a format of its own keeps them; its handlers get the
    fields. `events`: lines for the run's events too, from INFO on, since nothing else shows them.
    """
    root_level = {} if level.upper() == DEFAULT_LEVEL else {"": level}
    set_levels({**root_level, **({EVENTS: "INFO"} if events else {}), **levels})
    for handler in list(logging.root.handlers):
        if isinstance(handler, StandardErrorHandler) or _is_default(handler):
            logging.root.removeHandler(handler)
        else:
            handler.addFilter(_FIELDS)
    if not logging.root.handlers:
        logging.root.addHandler(StandardErrorHandler(form, events=events))


def _is_default(handler: logging.Handler) -> bool:
    """Return whether a handler is what `logging.warning(…)` makes when there is none."""
    form = getattr(handler.formatter, "_fmt", None)
    return type(handler) is logging.StreamHandler and handler.stream is sys.stderr and form == logging.BASIC_FORMAT


@attrs.frozen(kw_only=True)
class WorkerLogs:
    """The logging of a launch, as its workers on Spark repeat it: the form of lines, and the levels of loggers by name."""

    form: LogFormat = "text"
    levels: Mapping[str, int] = attrs.field(factory=dict)

    @contextlib.contextmanager
    def in_worker(self) -> Iterator[None]:
        """Write to standard error while this lasts, unless the process has handlers already."""
        write_whole_lines()
        if logging.root.handlers:
            yield
            return
        handler = StandardErrorHandler(self.form)
        before = levels_set()
        logging.root.addHandler(handler)
        set_levels(self.levels)
        try:
            yield
        finally:
            logging.root.removeHandler(handler)
            set_levels({**dict.fromkeys(self.levels, logging.NOTSET), **before})


def level_name(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    """Validate the name of a level."""
    if value.upper() not in LEVELS:
        raise ValueError(f"{attribute.name} is {value!r}, but must be {', '.join(LEVELS[:-1])} or {LEVELS[-1]}")


def level_names(_: object, attribute: attrs.Attribute[Any], value: Mapping[str, str]) -> None:
    """Validate the levels of loggers."""
    for name, level in value.items():
        if level.upper() not in LEVELS:
            known = f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}"
            raise ValueError(f"{attribute.name}.{name} is {level!r}, but must be {known}")
