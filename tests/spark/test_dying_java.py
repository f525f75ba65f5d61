"""The log lines of py4j when the JVM dies in the middle of a call: they are dropped, and those of others stay."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters

from dagflow.spark.connection.session import is_not_of_py4j

RESET = struct.pack("ii", 1, 0)  # closing such a socket resets the connection, as the death of a process does


@pytest.fixture
def filtered() -> Iterator[None]:
    root = logging.getLogger()
    root.addFilter(is_not_of_py4j)
    yield
    root.removeFilter(is_not_of_py4j)


@pytest.mark.usefixtures("filtered")
def test_a_call_without_an_answer_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def dies() -> None:
            connection, _ = server.accept()
            connection.recv(100)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()

        java = threading.Thread(target=dies)
        java.start()
        client = GatewayClient(gateway_parameters=GatewayParameters(port=server.getsockname()[1]))
        assert client.send_command("c\n", retry=False) == "x", "py4j's word for an error"
        java.join()
    logging.getLogger().warning("mine")
    assert [record.message for record in caplog.records] == ["mine"]
