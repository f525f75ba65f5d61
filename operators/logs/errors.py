"""Errors of message logs: logs that are away or refuse, topics that are missing or other ones, messages that are lost."""

from __future__ import annotations

from dagflow.errors import ConfigError, InfrastructureError, RunError, definition, error


@error("DF451", kw_only=True, is_transient=True)
class LogUnavailable(InfrastructureError):
    """A message log does not answer, or has lost the connection. The step is retried.

    `log`: its address; `doing`: the purpose; `reason`: the message of the client.
    """

    log: str
    doing: str
    reason: str
    template = (
        "{log}: the message log is not available ({reason}), while {doing}\n"
        "  help: start the servers, or correct their address; then launch again: the run resumes"
    )
    example = {"log": "kafka://localhost:9092", "doing": "reading events[3]", "reason": "connection refused"}


@error("DF452", kw_only=True)
class LogRefused(InfrastructureError):
    """A message log, or its client, refuses a connection or a request, for lack of permission for example.

    `log`: its address; `doing`: the purpose; `reason`: the message of the client; `needs`: the permissions that it takes;
    `help`: what to do.
    """

    log: str
    doing: str
    reason: str
    needs: str = ""
    help: str = "fix what it reports"
    template = (
        "{log} cannot be used, while {doing}: {reason}\n"
        "  help: {help}, then launch again: the run resumes"
        "{needs:?\n        The client needs {needs}}"
    )
    example = {
        "log": "kafka://localhost:9092",
        "doing": "reading events[3]",
        "reason": "Topic authorization failed",
        "needs": "Read and Describe on the topics",
    }


@error("DF295", kw_only=True)
class TopicMissing(ConfigError):
    """A log has no such topic, or no such partition. `topic`: the name, or that of a partition, or a pattern."""

    operator: str
    log: str
    topic: str
    known: tuple[str, ...] = ()
    template = (
        "operator {operator!r}: {log} has no topic {topic!r}\n"
        "  help: correct the name{known:? (of those that are chosen, there are {known})}, or create it, "
        "or let this client see it;\n"
        "        a continuous run waits for it with {operator:-D wait=true}"
    )
    example = {"operator": "events", "log": "kafka://localhost:9092", "topic": "evnts", "known": ("clicks", "events")}


@error("DF296", kw_only=True)
class StartTooFar(ConfigError):
    """The property `start` names an offset that a partition does not have yet. `end`: the offset behind its last message."""

    operator: str
    partition: str
    start: int
    end: int
    template = (
        "operator {operator!r}: start is offset {start:,} of {partition}, which ends before offset {end:,}\n"
        "  help: give an offset from its first one up to {end:,}, which stands for the end"
    )
    example = {"operator": "events", "partition": "events[3]", "start": 900, "end": 12}


@error("DF676", kw_only=True, is_fatal=True)
class OffsetsLost(RunError):
    """The log has deleted messages before they were read. The offsets from `start` up to `stop` (exclusive) are lost."""

    operator: str
    partition: str
    start: int
    stop: int
    example = {"operator": "events", "partition": "events[3]", "start": 100, "stop": 250}

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.partition} no longer has the offsets {self.start:,} to {self.stop - 1:,}: the log "
            "deleted these messages before they were read\n"
            f"  help: to continue behind them, and report how many are lost: {definition(self.operator, 'on_lost', 'skip')};\n"
            "        let the log keep messages for longer than the time between two launches"
        )


@error("DF677", kw_only=True, is_fatal=True)
class TopicReplaced(RunError):
    """A topic is not the one that earlier windows have read: it was deleted, created again, or cut back. `reason`: how it shows."""

    operator: str
    partition: str
    reason: str
    template = (
        "operator {operator!r}: {partition} is not the log that was read so far: {reason}\n"
        "  help: bring the topic back, and launch again: the run resumes;\n"
        "        to read the topic as it is now, launch with --fresh"
    )
    example = {"operator": "events", "partition": "events[3]", "reason": "offset 900 was read, and it ends at 12 now"}


@error("DF678", kw_only=True)
class MessageNotReadable(RunError, ValueError):
    """The value of a message does not have the form that its decoder expects. Its place stands with the error."""

    reason: str
    template = (
        "a message cannot be decoded: {reason}\n"
        "  help: to route such messages with topic, partition and offset, set on_error = route on the reader"
    )
    example = {"reason": "it does not begin with a zero byte and the id of a schema"}
