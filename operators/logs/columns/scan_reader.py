"""AbstractLogScanReader: reads ranges of offsets as columns of the values of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import OperatorContext
from dagflow.scan import AgreedSchema, BadRow
from operators.logs.access import ReadsLog, lost_text
from operators.logs.blocks import OffsetBlock
from operators.logs.columns.values import DecodedMessages, JsonMessages, MessageReader
from operators.logs.errors import OffsetsLost, TopicReplaced
from operators.logs.event_times import ValueFormat, value_format_problem
from operators.logs.messages import SCHEMA
from operators.logs.protocol import LogStream
from operators.names import one_or_more
from operators.problems import all_problems
from operators.readers.abstract_scan_reader import AbstractScanReader

T = TypeVar("T", default=Any)


@attrs.define
class AbstractLogScanReader(ReadsLog, AbstractScanReader[T, OffsetBlock, LogStream], Generic[T]):
    """Reads ranges of offsets of a message log as batches of typed columns, which are the members of the values.

    The columns and their types are those of `schema`, or are settled before the first window from the first messages of some
    blocks: see docs/explanation/scans.md. A subclass says how the log is reached (`log`, see ReadsLog). Idle readers take over
    the end of the range that a busy one reads.

    Args:
        value_format: `json` (objects), or a function of bytes that returns a dictionary, such as AvroDecoder.
        message_columns: columns of LogMessage that stand beside those of the value. A member of the value that has the name of
            one of them is not read.
        on_lost, batch_bytes: see ReadsLog.
        columns, schema, drift, on_bad_row, limits, null_type, sample_blocks: see AbstractScanReader.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.

    `on_bad_row` applies to each message that cannot be read; a BadRow has the partition as its path, and the offset as its
    position. Messages without a value are counted as dropped.

    Counters: see AbstractScanReader, and `dropped`, `offsets_lost`.

    Raises OffsetsLost, TopicReplaced, LogRefused, and LogUnavailable, after which the task runs again.
    """

    value_format: ValueFormat = attrs.field(default="json", kw_only=True)
    message_columns: tuple[str, ...] = attrs.field(default=("topic", "partition", "offset"), kw_only=True, converter=one_or_more)

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if (problem := value_format_problem(self.value_format)) is not None:
                problems.append(problem)
            if unknown := [name for name in self.message_columns if name not in SCHEMA.names]:
                problems.append(f"message_columns has {', '.join(unknown)}: a message has {', '.join(SCHEMA.names)}")

    def make_reader(self) -> MessageReader:
        """Return the reader of a range."""
        if self.value_format == "json":
            return JsonMessages(self, self.message_columns)
        assert callable(self.value_format)
        return DecodedMessages(self, self.message_columns, decode=self.value_format)

    def can_split(self, item: OffsetBlock) -> bool:
        """Return True: each message is a split point."""
        return True

    def item_group(self, item: OffsetBlock) -> str | None:
        """Return the partition, whose blocks stay together where the reader is `sequential`."""
        return item.name if self.sequential else None

    def agree(self, items: Sequence[OffsetBlock], before: Any, context: OperatorContext) -> Any:
        """Agree on columns, and close the connection that looked at messages.

        Later windows look again while no message could be read: the columns of the message itself are always known.
        """
        try:
            agreed = AgreedSchema.of(super().agree(items, before, context))
        except TopicReplaced as error:
            error.operator = error.operator or context.name  # which adapters do not know
            raise
        finally:
            self.disconnect()
        has_values = any(name not in self.message_columns for name, _ in agreed.columns)
        return (agreed if has_values else attrs.evolve(agreed, files=0)).to_plain()

    def report_lost(self, context: OperatorContext, lost: OffsetsLost) -> None:
        """Emit a BadRow for a lost range on the port `errors`."""
        if self.errors.is_connected:
            self.errors.emit(BadRow(lost.partition, lost.start, None, None, lost_text(lost), ""))
