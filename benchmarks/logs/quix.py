"""The filter in quixstreams, which wants another confluent-kafka: a script for a Python that has it."""

from __future__ import annotations

import sys
import time
import uuid
from typing import Any

from quixstreams import Application  # type: ignore[import-not-found, unused-ignore]


def main(servers: str, name: str, count: str, target: str) -> None:
    """Write the wanted messages to a file, and print the seconds."""
    seen, began, ended = 0, 0.0, 0.0

    def done(topic: str, partition: int, offset: int) -> None:
        nonlocal seen, ended
        seen += 1
        if seen == int(count):
            ended = time.perf_counter()
            application.stop()

    application: Any = Application(
        servers,
        consumer_group=f"bench-{uuid.uuid4().hex}",
        auto_offset_reset="earliest",
        auto_create_topics=False,
        loglevel=None,
        on_message_processed=done,
    )
    topic = application.topic(name, key_deserializer="bytes", value_deserializer="bytes")
    with open(target, "wb") as file:

        def write(value: bytes) -> None:
            file.write(value + b"\n")

        frame = application.dataframe(topic).filter(lambda value: not value.startswith(b".")).update(write)
        began = time.perf_counter()
        application.run(frame)
    print(ended - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
