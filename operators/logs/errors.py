"""Errors of message logs: logs that are away or refuse, topics that are missing or other ones, messages that are lost."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError, RunError, definition, error


@error(kw_only=True)
class LogUnavailable(InfrastructureError):
    """A message log does not answer, or has lost the connection. The step is retried.

    `log`: its address; `doing`: the purpose; `reason`: the message of the client.
    """

    code: ClassVar[str] = "DF451"
    example = {"log": "kafka://localhost:9092", "doing": "reading events[3]", "reason": "connection refused"}
    general_remedy = "start the servers, or correct their address; then launch again: the run resumes"
    is_transient: ClassVar[bool] = True
    is_fatal: ClassVar[bool] = True  # `on_error` is for messages, and never skips a block whose servers are away

    log: str
    doing: str
    reason: str

    def message(self) -> str:
        return f"{self.log}: the message log is not available ({self.reason}), while {self.doing}\n  help: {self.general_remedy}"


@error(kw_only=True)
class LogRefused(InfrastructureError):
    """A message log, or its client, refuses a connection or a request, for lack of permission for example.

    `log`: its address; `doing`: the purpose; `reason`: the message of the client; `needs`: the permissions that it takes;
    `help`: what to do.
    """

    code: ClassVar[str] = "DF452"
    example = {
        "log": "kafka://localhost:9092",
        "doing": "reading events[3]",
        "reason": "Topic authorization failed",
        "needs": "Read and Describe on the topics",
    }
    general_remedy = "fix what the log reports, then launch again: the run resumes"
    is_fatal: ClassVar[bool] = True

    log: str
    doing: str
    reason: str
    needs: str = ""
    help: str = "fix what it reports"

    def message(self) -> str:
        return (
            f"{self.log} cannot be used, while {self.doing}: {self.reason}\n"
            f"  help: {self.help}, then launch again: the run resumes"
            + (f"\n        The client needs {self.needs}" if self.needs else "")
        )


@error(kw_only=True)
class TopicMissing(ConfigError):
    """A log has no such topic, or no such partition. `topic`: the name, or that of a partition, or a pattern."""

    code: ClassVar[str] = "DF295"
    example = {"operator": "events", "log": "kafka://localhost:9092", "topic": "evnts", "known": ("clicks", "events")}

    operator: str
    log: str
    topic: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        there = f" (of those that are chosen, there are {', '.join(self.known)})" if self.known else ""
        return (
            f"operator {self.operator!r}: {self.log} has no topic {self.topic!r}\n"
            f"  help: correct the name{there}, or create it, or let this client see it;\n"
            f"        a continuous run waits for it with {definition(self.operator, 'wait', 'true')}"
        )


@error(kw_only=True)
class StartTooFar(ConfigError):
    """The property `start` names an offset that a partition does not have yet. `end`: the offset behind its last message."""

    code: ClassVar[str] = "DF296"
    example = {"operator": "events", "partition": "events[3]", "start": 900, "end": 12}

    operator: str
    partition: str
    start: int
    end: int

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: start is offset {self.start:,} of {self.partition}, which ends before offset {self.end:,}\n"
            f"  help: give an offset from its first one up to {self.end:,}, which stands for the end"
        )


@error(kw_only=True)
class OffsetsLost(RunError):
    """The log has deleted messages before they were read. The offsets from `start` up to `stop` (exclusive) are lost."""

    code: ClassVar[str] = "DF676"
    example = {"operator": "events", "partition": "events[3]", "start": 100, "stop": 250}
    general_remedy = "let the log keep messages for longer; continue behind the gap with on_lost = skip"
    is_fatal: ClassVar[bool] = True

    operator: str
    partition: str
    start: int
    stop: int

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.partition} no longer has the offsets {self.start:,} to {self.stop - 1:,}: the log "
            "deleted these messages before they were read\n"
            f"  help: to continue behind them, and report how many are lost: {definition(self.operator, 'on_lost', 'skip')};\n"
            "        let the log keep messages for longer than the time between two launches"
        )


@error(kw_only=True)
class TopicReplaced(RunError):
    """A topic is not the one that earlier windows have read: it was deleted, created again, or cut back. `reason`: how it shows."""

    code: ClassVar[str] = "DF677"
    example = {"operator": "events", "partition": "events[3]", "reason": "offset 900 was read, and it ends at 12 now"}
    general_remedy = "bring the topic back, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    operator: str
    partition: str
    reason: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.partition} is not the log that was read so far: {self.reason}\n"
            "  help: bring the topic back, and launch again: the run resumes;\n"
            "        to read the topic as it is now, launch with --fresh"
        )


@error(kw_only=True)
class MessageNotReadable(RunError, ValueError):
    """The value of a message does not have the form that its decoder expects. Its place stands with the error."""

    code: ClassVar[str] = "DF678"
    example = {"reason": "it does not begin with a zero byte and the id of a schema"}
    general_remedy = "route such messages with on_error = route on the reader, or skip them with on_error = skip"

    reason: str

    def message(self) -> str:
        return (
            f"a message cannot be decoded: {self.reason}\n"
            "  help: to route such messages with topic, partition and offset, set on_error = route on the reader"
        )
