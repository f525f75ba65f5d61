"""A Kafka cluster with faults to order: librdkafka's mock cluster, from the library that confluent-kafka brings along.

It lives in the process of the test, and clients of other processes reach it too. It knows no transactions: it neither fences
producers nor hides records that were aborted.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

Api = Literal["Produce", "Fetch", "ListOffsets", "Metadata", "FindCoordinator", "InitProducerId"]

_API_KEYS: dict[Api, int] = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "FindCoordinator": 10,
    "InitProducerId": 22,
}
_PRODUCER = 0


class MockCluster:
    """A cluster of brokers, numbered from 1.

    Errors are given by Kafka's numbers, as in `KafkaError.NOT_LEADER_FOR_PARTITION`. Each method says so when it was refused.
    """

    def __init__(self, brokers: int = 3) -> None:
        """Start the brokers."""
        self._library = library = ctypes.CDLL(_bundled_library())
        self._client = self._pointer("rd_kafka_new", _PRODUCER, None, None, ctypes.c_size_t(0))
        self._cluster = self._pointer("rd_kafka_mock_cluster_new", self._client, brokers)
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        self.bootstrap: str = library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def close(self) -> None:
        """Stop the brokers."""
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)

    # ------------------------------------------------------------------------------------------------------------ topics

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic."""
        self._call("topic_create", topic.encode(), partitions, 1)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self._call("topic_delete", topic.encode())

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete the records of a partition before an offset, as retention does."""
        self._call("partition_delete_records", topic.encode(), partition, ctypes.c_int64(before))

    def move(self, topic: str, partition: int, broker: int) -> None:
        """Make a broker the leader of a partition, in a new leader epoch."""
        self._call("partition_set_leader", topic.encode(), partition, broker)

    # ------------------------------------------------------------------------------------------------------------ faults

    def fail(self, api: Api, *errors: int) -> None:
        """Answer the next requests of a kind, to any broker, by errors. 0 is a request that succeeds."""
        codes = (ctypes.c_int * len(errors))(*errors)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(_API_KEYS[api]), ctypes.c_size_t(len(errors)), codes
        )

    def fail_partition(self, topic: str, partition: int, api: Api, *errors: int) -> None:
        """Answer the next requests of a kind for one partition by errors."""
        numbers = [ctypes.c_int(error) for error in errors]
        self._call(
            "partition_push_request_errors", topic.encode(), partition, ctypes.c_int16(_API_KEYS[api]), len(errors), *numbers
        )

    def heal(self, api: Api) -> None:
        """Forget the errors that requests of a kind have not met yet."""
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(_API_KEYS[api]))

    def down(self, broker: int) -> None:
        """Stop a broker: it closes its connections, and refuses new ones."""
        self._call("broker_set_down", broker)

    def up(self, broker: int) -> None:
        """Start a broker again."""
        self._call("broker_set_up", broker)

    def delay(self, broker: int, milliseconds: int) -> None:
        """Let each answer of a broker take so long. 0: no longer."""
        self._call("broker_set_rtt", broker, milliseconds)

    # ----------------------------------------------------------------------------------------------------------- ctypes

    def _pointer(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        function: Callable[..., Any] = getattr(self._library, name)
        function.restype = ctypes.c_void_p  # type: ignore[attr-defined]
        pointer = function(*arguments)
        assert pointer, name
        return ctypes.c_void_p(pointer)

    def _call(self, name: str, *arguments: Any) -> None:
        error = getattr(self._library, f"rd_kafka_mock_{name}")(self._cluster, *arguments)
        if error:
            from confluent_kafka import KafkaError

            raise AssertionError(f"the mock cluster refuses {name}{arguments}: {KafkaError(error).str()}")


def _bundled_library() -> str:
    import confluent_kafka

    package = Path(confluent_kafka.__file__).parent
    pattern = ".dylibs/librdkafka*.dylib" if sys.platform == "darwin" else "../confluent_kafka.libs/librdkafka-*.so*"
    [library] = package.glob(pattern)
    return str(library)
