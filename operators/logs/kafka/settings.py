"""The settings of a cluster's clients, and the meaning of their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from dagflow.config import Seconds, Secret, seconds_of
from dagflow.errors import PackageMissing
from operators.logs.errors import LogRefused, LogUnavailable
from operators.problems import all_problems

OWN_SETTINGS = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "group.instance.id",
        "group.protocol",
        "partition.assignment.strategy",
    }
)
"""Settings of librdkafka that reading each message once rests on."""

_DEFAULTS: dict[str, Any] = {
    "client.id": "dagflow",
    "group.id": "dagflow",  # librdkafka wants one; nothing joins it, and nothing is committed to it
    "log_level": 0,  # what librdkafka would print is raised, or noticed by `error_cb`
    "fetch.error.backoff.ms": 50,
    "fetch.queue.backoff.ms": 10,  # the default is a second without fetches, whenever enough is read ahead
    "fetch.wait.max.ms": 50,
    "queued.max.messages.kbytes": 16_384,  # it reads ahead, also behind the stop of a block
    "reconnect.backoff.max.ms": 1_000,
    "check.crcs": True,
}
_REFUSALS = (
    "AUTHENTICATION",
    "AUTHORIZATION",
    "SASL",
    "UNKNOWN_TOPIC",
    "UNSUPPORTED",
    "_BAD_COMPRESSION",
    "_BAD_MSG",
    "_FATAL",
    "_INVALID_ARG",
    "_NOT_IMPLEMENTED",
    "_SSL",
    "_UNKNOWN_PARTITION",
)
"""Parts of the names of errors that do not pass by themselves. Clients retry after all others."""
_MISSING = frozenset({"UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC"})
"""Names of errors that servers also give for a moment, while a topic is created or a leader starts."""
_VAGUE = frozenset({"_ALL_BROKERS_DOWN", "_TIMED_OUT", "_TRANSPORT"})
NEEDS = "Read and Describe on the topics"
_LOGIN = "another user, password or sasl.mechanism in config"
LOGIN_NEEDS = {"AUTHENTICATION": _LOGIN, "SASL": _LOGIN, "_SSL": "other certificates in config"}
"""The needs of a client that the server refuses, by a part of the error's name."""
UNSUPPORTED = frozenset({"UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE"})
"""The answers of servers that are too old to describe topics."""


def is_missing(problem: Any) -> bool:
    """Return True for an error which says that there is no such topic or partition."""
    return problem.name() in _MISSING


def load_kafka(operator: str) -> Any:
    """Return the package confluent-kafka. Raises PackageMissing."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise PackageMissing(needed_by=operator, package="confluent-kafka", install="'dagflow[kafka]'") from error
    return confluent_kafka


def identity_of(described: Any) -> str | None:
    """Return the id of a topic by its description; None from servers without ids, which are older than Kafka 2.8."""
    identity = str(getattr(described, "topic_id", None) or "")
    return identity if identity.strip("A") else None  # zero, in base64


@attrs.define(slots=False)
class KafkaProperties:
    """The properties by which operators reach a cluster.

    Args:
        bootstrap_servers: `host:9092`, or several, separated by commas.
        config: further settings of librdkafka, for security for example. They are shown nowhere.
        timeout: the time without any answer before the step fails, and is retried.
    """

    bootstrap_servers: str = attrs.field(validator=attrs.validators.instance_of(str))
    config: Mapping[str, Secret] = attrs.field(factory=dict, kw_only=True, repr=False)
    timeout: Seconds = attrs.field(default=30.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))


@attrs.define(slots=False)
class UsesKafka(KafkaProperties):
    """An operator that reaches a cluster. `own_settings`: those of librdkafka that it sets itself, and `own_reason` why."""

    own_settings: ClassVar[frozenset[str]] = OWN_SETTINGS
    own_reason: ClassVar[str] = "set by dagflow, which reads each message once by it"

    def check(self) -> None:
        """Raise ValueError for properties that no cluster can have, and PackageMissing."""
        load_kafka(type(self).__name__)
        with all_problems(super().check) as problems:  # type: ignore[misc]  # this class stands before an operator
            if not self.bootstrap_servers:
                problems.append("bootstrap_servers is empty: write host:9092")
            if own := sorted(self.own_settings.intersection(self.config)):
                problems.append(f"config has {', '.join(own)}: {self.own_reason}")


@attrs.define(eq=False)
class ClientSettings:
    """The settings of clients, and what these have noticed on their own.

    Args:
        servers: addresses, separated by commas.
        config: further settings of librdkafka.
        timeout: seconds without any answer before an operation fails.

    Attributes:
        noticed: the last error that a client has noticed by itself; None: none since the last answer.
    """

    servers: str
    config: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    timeout: float = 30.0
    noticed: Any = attrs.field(init=False, default=None)

    @property
    def place(self) -> str:
        """The address, for messages."""
        return f"kafka://{self.servers}"

    @property
    def reads_committed(self) -> bool:
        """True if messages of transactions are read once these are committed."""
        return bool(self.config.get("isolation.level") != "read_uncommitted")

    def all(self, **own: Any) -> dict[str, Any]:
        """Return the settings of a client."""
        return {
            **_DEFAULTS,
            **self.config,
            "bootstrap.servers": self.servers,
            "error_cb": self._notice,
            **own,
        }

    def error(self, problem: Any, doing: str) -> LogUnavailable | LogRefused:
        """Return the error to raise for an error of the client: LogUnavailable if it can pass."""
        if (problem is None or problem.name() in _VAGUE) and self.noticed is not None:
            problem = self.noticed  # which says more: a login that is refused, an address that does not resolve
        if problem is None or not self.is_refusal(problem):
            reason = "no answer" if problem is None else problem.str()
            return LogUnavailable(log=self.place, doing=doing, reason=reason)
        needs = next((text for part, text in {"AUTHORIZATION": NEEDS, **LOGIN_NEEDS}.items() if part in problem.name()), "")
        more = {"help": "correct the settings in config"} if problem.name() == "_INVALID_ARG" else {}
        return LogRefused(log=self.place, doing=doing, reason=problem.str(), needs=needs, **more)

    def is_refusal(self, problem: Any) -> bool:
        """Return True for an error that does not pass by itself."""
        name = str(problem.name())
        return "GROUP" not in name and any(part in name for part in _REFUSALS)

    def _notice(self, problem: Any) -> None:
        if self.noticed is None or problem.name() != "_ALL_BROKERS_DOWN":  # which says less than what was before it
            self.noticed = problem
