"""Errors of sinks that publish to a message log."""

from __future__ import annotations

from dagflow.errors import InfrastructureError, RunError, error


@error("DF471", kw_only=True)
class LogNotWritable(InfrastructureError):
    """There is no such topic or stream, or it does not take messages such as those of a sink.

    `log`: its place; `doing`: the purpose; `reason`: the message of the server; `help`: what to do.
    """

    log: str
    doing: str
    reason: str
    help: str
    template = "{log} cannot be written to, while {doing}: {reason}\n  help: {help}; then launch again: the run resumes"
    example = {
        "log": "topic 'sales' of localhost:9092",
        "doing": "publishing window 3",
        "reason": "Broker: Unknown topic or partition",
        "help": "create the topic, or correct its name",
    }


@error("DF367", kw_only=True)
class MessageTooLarge(RunError, ValueError):
    """A message has more bytes than may be published. `property`: of the operator, which holds the limit."""

    operator: str
    size: int
    limit: int
    property: str
    template = (
        "{operator}: a message has {size:,} bytes, and {property} is {limit:,}\n"
        "  help: leave such rows out (on_error='skip'), or raise the limit of the server, and this property to the same value"
    )
    example = {"operator": "KafkaWriter", "size": 2_000_000, "limit": 1_000_000, "property": "max_message_bytes"}


@error("DF368", kw_only=True, is_fatal=True)
class MessageRefused(RunError, ValueError):
    """A server refuses a message of a decided window. `log`: its place; `reason`: the message of the server."""

    log: str
    window: int
    reason: str
    template = (
        "{log} refuses a message of window {window}: {reason}\n"
        "  help: the window is decided: change the settings of the topic or stream so that it takes the message, and launch\n"
        "        again: the rest of the window is published"
    )
    example = {"log": "topic 'sales' of localhost:9092", "window": 3, "reason": "Broker: Message size too large"}


@error("DF369", kw_only=True, is_fatal=True)
class LogReplaced(RunError):
    """A topic or stream is not the one that earlier windows were published to, or has lost messages since.

    `window`: the one that waits to be published; None where a launch has noticed it before it had any. `reason`: what is
    different; `note`: the file whose removal accepts it.
    """

    log: str
    window: int | None
    reason: str
    note: str
    template = (
        "{log}: {reason}{window:?; window {window} is decided, and not published}\n"
        "  help: if the log is right as it is, remove this file, and launch again: "
        "{window:?the whole window is published|the run resumes, and nothing that is missing is sent again}\n"
        "        {note}\n"
        "        To write all windows anew, launch with --fresh"
    )
    example = {
        "log": "topic 'sales' of localhost:9092",
        "window": 3,
        "reason": "it was created again since window 2",
        "note": "out/_dagflow/staged/0000000002.sales.begun",
    }


@error("DF321", kw_only=True, is_fatal=True)
class LogTailTooLong(RunError):
    """After a crash, too many messages would have to be read back to see which of a window are in. `limit`: of `look_back`."""

    log: str
    window: int
    partition: int
    messages: int
    limit: int
    template = (
        "{log}: {messages:,} messages came to partition {partition} since window {window} began to be published, "
        "and look_back is {limit:,}\n"
        "  help: other producers write to it: raise look_back, and launch again: the messages are read back, and the rest of\n"
        "        the window is published"
    )
    example = {"log": "topic 'sales' of localhost:9092", "window": 3, "partition": 2, "messages": 3_000_000, "limit": 1_000_000}


@error("DF325", kw_only=True, is_fatal=True)
class StagedMessagesMissing(RunError):
    """A file of messages that a task has staged for a decided window is not as it was written."""

    sink: str
    window: int
    file: str
    reason: str
    template = (
        "{sink}: staged messages of window {window} are lost: {file}: {reason}\n"
        "  help: bring the file back (the run folder may be an older copy), or write all windows anew with --fresh"
    )
    example = {"sink": "sales", "window": 3, "file": "out/_dagflow/staged/0000000003.1f", "reason": "it is not there"}


@error("DF309", kw_only=True, is_fatal=True)
class LogHasMessages(RunError):
    """`--fresh` would publish messages again that are in the log. `application`: the run that has published them."""

    log: str
    application: str
    template = (
        "{log} has messages of an earlier run ({application}), and --fresh would publish them again\n"
        "  help: delete the records of the topic or purge the stream, or name another one; then launch again"
    )
    example = {"log": "topic 'sales' of localhost:9092", "application": "shop-1f"}
