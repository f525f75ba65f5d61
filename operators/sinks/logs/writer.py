"""The base of sinks that publish messages to a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, Sink, SinkLaunch, StagedWindow, WindowMark
from dagflow.config import Bytes, MiB, Seconds, one_of, seconds_of, size_of
from operators.names import one_or_more
from operators.problems import all_problems
from operators.sinks.logs.client import LogTarget
from operators.sinks.logs.messages import MessageEncoder, Part
from operators.sinks.logs.publishing import LogPublisher
from operators.sinks.logs.staging import MessageStaging
from operators.sinks.tables.changelog import CHANGE_TYPE, with_change_type
from operators.sinks.tables.modes import LOG_MODES, LogMode, behind_current, mode_problems

T = TypeVar("T", default=Any)


def columns_alone(operator: Any) -> bool:
    """Return True if every part of a message is a column."""
    return all(isinstance(part, str) for part in operator.encoder().parts.values())


def calls_functions(operator: Any) -> bool:
    """Return True if a part of a message is a function of a record."""
    return not columns_alone(operator)


@attrs.define
class LogWriter(Sink, Generic[T]):
    """A sink that publishes each row as a message of a log, in order, once its window is decided.

    Tasks stage messages as files in the run folder. The driver sends them when the window is decided: task by task, in the order
    in which rows came. Each message carries application and sink, window, and its number within the partition. After a crash, the
    last of these are read back, and only what the log does not have is sent.

    Attributes:
        mode: `append`, or None, publishes rows that stay. `changelog` publishes the changes of each window, of rows that may be
            taken back, too: their kind, `insert`, `delete`, `update_preimage` or `update_postimage`, is the column
            `_change_type` of the JSON object; with a `value`, the header `_change_type`.
        keys: with `changelog`, the columns that identify a row: what is taken back and what comes with the same keys is an
            update. Empty: the column of `key`, where there is one; else all changes are insertions and deletions.
        value: the value of a message: a column, or a function of a record that returns text, bytes or None. Without one, bare
            text and bytes are values as they are, of a `ReaderRecord` its record, and other rows become JSON objects.
        headers: further headers, each a column or a function, by name.
        max_message_bytes: the most bytes of a message, with its key and headers. Rows with more are bad records.
        look_back: the most messages of a partition that are read back after a crash. More may only come from other producers.
        settle: the time in which the last messages of a launch that died may still arrive. A launch waits so long after a crash.
        buffer_bytes: the bytes of messages that wait in a task before they are written to a file.
    """

    mode: LogMode | None = attrs.field(default=None, kw_only=True, validator=attrs.validators.optional(one_of(LOG_MODES)))
    keys: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)
    value: str | Callable[[T], Any] | None = attrs.field(default=None, kw_only=True)
    headers: Mapping[str, str | Callable[[T], Any]] = attrs.field(factory=dict, kw_only=True)
    max_message_bytes: Bytes = attrs.field(default=1_000_000, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))
    look_back: int = attrs.field(default=1_000_000, kw_only=True, validator=attrs.validators.ge(1_000))
    settle: Seconds = attrs.field(default=1.0, kw_only=True, converter=seconds_of, validator=attrs.validators.ge(0))
    buffer_bytes: Bytes = attrs.field(default=4 * MiB, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))

    input = InputPort[T]()

    def log(self) -> LogTarget:
        """Return the log to publish to."""
        raise NotImplementedError(f"{type(self).__name__} has no log: override log()")

    def parts(self) -> Mapping[str, Part]:
        """Return further parts of a message: `key`, `partition`, `subject` and `time`."""
        return {}

    def encoder(self) -> MessageEncoder:
        """Return the encoder of rows."""
        parts = self.parts()
        return MessageEncoder(
            operator=type(self).__name__,
            key=parts.get("key"),
            value=self.value,
            partition=parts.get("partition"),
            subject=parts.get("subject"),
            time=parts.get("time"),
            headers={**self.headers, CHANGE_TYPE: CHANGE_TYPE} if self._has_kind_apart() else self.headers,
            max_bytes=self.max_message_bytes,
        )

    def row_keys(self) -> tuple[str, ...]:
        """Return the columns that identify a row of a changelog."""
        return self.keys

    def behind_current(self) -> tuple[Operator, Operator] | None:
        """Return the operator that has the changes of each window, and this sink; None where messages are only added."""
        if self.mode != "changelog":
            return None
        key = self.parts().get("key")
        return behind_current(self, self.mode, self.keys or ((key,) if isinstance(key, str) else ()))

    def content_properties(self) -> tuple[str, ...]:
        """Return the mode."""
        return ("mode",)

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            problems.extend(mode_problems(self.mode, self.keys))
            if self.mode == "changelog" and calls_functions(self):
                problems.append("mode 'changelog' needs columns as parts of messages, not functions: put Map(…) before it")
            headers = {f"headers[{name!r}]": part for name, part in self.headers.items()}
            for name, part in {"value": self.value, **self.parts(), **headers}.items():
                if part is not None and (not part or not (isinstance(part, str) or callable(part))):
                    problems.append(f"{name} is {part!r}, and must be the name of a column, or a function of a record")
            problems += [
                f"headers has {name!r}: names that begin with dagflow- are reserved"
                for name in self.headers
                if name.lower().startswith(("dagflow-", "nats-"))
            ]

    def needed_columns(self, port: str) -> dict[str, Sequence[str]]:
        """Return the columns that parts of messages are made of."""
        parts = {name: [part] for name, part in self.encoder().parts.items() if isinstance(part, str) and part != CHANGE_TYPE}
        return {**parts, "keys": self.keys}

    def _has_kind_apart(self) -> bool:
        return self.mode == "changelog" and self.value is not None

    def setup(self, context: OperatorContext) -> None:
        """Begin with nothing staged."""
        self._staging = MessageStaging(context, self.encoder(), self.log(), self.buffer_bytes)

    def destination(self) -> str:
        """Return the log and its servers."""
        return self.log().place

    def check_store(self, launch: SinkLaunch) -> Sequence[str]:
        """See `Sink.check_store`. Raises LogUnavailable, LogRefused, LogHasMessages."""
        return self._publisher().check(launch)

    def begin_window(self, window: int) -> None:
        """Begin with nothing staged."""
        self._staging.begin()

    @input.batch(when=columns_alone)
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Stage a batch: all of it or, when it raises, nothing."""
        self._staging.add(with_change_type(batch) if self.mode == "changelog" else batch)

    @input.process(when=calls_functions)
    def write(self, record: T) -> None:
        """Stage one record."""
        self._staging.add_record(record)

    def stage(self) -> Any:
        """Complete the file of messages, and describe it."""
        return self._staging.finish()

    def check_window(self, window: StagedWindow) -> None:
        """See `Sink.check_window`. Raises LogNotWritable, LogUnavailable."""
        if any(each["is_keyless"] for each in window.staged):
            self.log().check_keyless()

    def publish(self, window: StagedWindow) -> None:
        """See `Sink.publish`.

        Raises LogReplaced, LogTailTooLong, MessageRefused, StagedMessagesMissing, LogRefused, and LogUnavailable, which
        is transient.
        """
        self._publisher().publish(window)

    def is_published(self, window: StagedWindow) -> bool:
        """See `Sink.is_published`."""
        return self._publisher().is_published(window)

    def newest_mark(self, last: StagedWindow) -> WindowMark:
        """See `Sink.newest_mark`. Raises LogReplaced, LogRefused, LogUnavailable."""
        return self._publisher().newest_mark(last)

    def sweep(self, window: StagedWindow) -> None:
        """See `Sink.sweep`."""
        self._publisher().sweep(window)

    def _publisher(self) -> LogPublisher:
        return LogPublisher(self.log(), self.look_back, self.settle)
