"""Errors of sinks that publish to a message log."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import InfrastructureError, RunError, error


@error(kw_only=True)
class LogNotWritable(InfrastructureError):
    """There is no such topic or stream, or it does not take messages such as those of a sink.

    `log`: its place; `doing`: the purpose; `reason`: the message of the server; `help`: what to do.
    """

    code: ClassVar[str] = "DF471"
    example = {
        "log": "topic 'sales' of localhost:9092",
        "doing": "publishing window 3",
        "reason": "Broker: Unknown topic or partition",
        "help": "create the topic, or correct its name",
    }
    general_remedy = "fix what the server reports, then launch again: the run resumes"

    log: str
    doing: str
    reason: str
    help: str

    def message(self) -> str:
        return f"{self.log} cannot be written to, while {self.doing}: {self.reason}\n  help: {self.help}; then launch again: the run resumes"


@error(kw_only=True)
class MessageTooLarge(RunError, ValueError):
    """A message has more bytes than may be published. `property`: of the operator, which holds the limit."""

    code: ClassVar[str] = "DF367"
    example = {"operator": "KafkaWriter", "size": 2_000_000, "limit": 1_000_000, "property": "max_message_bytes"}

    operator: str
    size: int
    limit: int
    property: str

    def message(self) -> str:
        return (
            f"{self.operator}: a message has {self.size:,} bytes, and {self.property} is {self.limit:,}\n"
            "  help: leave such rows out (on_error='skip'), or raise the limit of the server, and this property to the same value"
        )


@error(kw_only=True)
class MessageRefused(RunError, ValueError):
    """A server refuses a message of a decided window. `log`: its place; `reason`: the message of the server."""

    code: ClassVar[str] = "DF368"
    example = {"log": "topic 'sales' of localhost:9092", "window": 3, "reason": "Broker: Message size too large"}
    is_fatal: ClassVar[bool] = True

    log: str
    window: int
    reason: str

    def message(self) -> str:
        return (
            f"{self.log} refuses a message of window {self.window}: {self.reason}\n"
            "  help: the window is decided: change the settings of the topic or stream so that it takes the message, and launch\n"
            "        again: the rest of the window is published"
        )


@error(kw_only=True)
class LogReplaced(RunError):
    """A topic or stream is not the one that earlier windows were published to, or has lost messages since.

    `window`: the one that waits to be published; None where a launch has noticed it before it had any. `reason`: what is
    different; `note`: the file whose removal accepts it.
    """

    code: ClassVar[str] = "DF369"
    example = {
        "log": "topic 'sales' of localhost:9092",
        "window": 3,
        "reason": "it was created again since window 2",
        "note": "out/_dagflow/staged/0000000002.sales.begun",
    }
    is_fatal: ClassVar[bool] = True

    log: str
    window: int | None
    reason: str
    note: str

    def message(self) -> str:
        if self.window is None:
            waiting, then = "", "the run resumes, and nothing that is missing is sent again"
        else:
            waiting, then = f"; window {self.window} is decided, and not published", "the whole window is published"
        return (
            f"{self.log}: {self.reason}{waiting}\n"
            f"  help: if the log is right as it is, remove this file, and launch again: {then}\n"
            f"        {self.note}\n"
            "        To write all windows anew, launch with --fresh"
        )


@error(kw_only=True)
class LogTailTooLong(RunError):
    """After a crash, too many messages would have to be read back to see which of a window are in. `limit`: of `look_back`."""

    code: ClassVar[str] = "DF321"
    example = {"log": "topic 'sales' of localhost:9092", "window": 3, "partition": 2, "messages": 3_000_000, "limit": 1_000_000}
    is_fatal: ClassVar[bool] = True

    log: str
    window: int
    partition: int
    messages: int
    limit: int

    def message(self) -> str:
        return (
            f"{self.log}: {self.messages:,} messages came to partition {self.partition} since window {self.window} began to be "
            f"published, and look_back is {self.limit:,}\n"
            "  help: other producers write to it: raise look_back, and launch again: the messages are read back, and the rest of\n"
            "        the window is published"
        )


@error(kw_only=True)
class StagedMessagesMissing(RunError):
    """A file of messages that a task has staged for a decided window is not as it was written."""

    code: ClassVar[str] = "DF325"
    example = {"sink": "sales", "window": 3, "file": "out/_dagflow/staged/0000000003.1f", "reason": "it is not there"}
    is_fatal: ClassVar[bool] = True

    sink: str
    window: int
    file: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.sink}: staged messages of window {self.window} are lost: {self.file}: {self.reason}\n"
            "  help: bring the file back (the run folder may be an older copy), or write all windows anew with --fresh"
        )


@error(kw_only=True)
class LogHasMessages(RunError):
    """`--fresh` would publish messages again that are in the log. `application`: the run that has published them."""

    code: ClassVar[str] = "DF309"
    example = {"log": "topic 'sales' of localhost:9092", "application": "shop-1f"}
    is_fatal: ClassVar[bool] = True

    log: str
    application: str

    def message(self) -> str:
        return (
            f"{self.log} has messages of an earlier run ({self.application}), and --fresh would publish them again\n"
            "  help: delete the records of the topic or purge the stream, or name another one; then launch again"
        )
