"""Addresses, and the check that a server listens there."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from dagflow.errors import ClusterUnreachable
from dagflow.spark.connection.reach import check_reachable, endpoints


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def nobody() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
        return number


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("spark://boss", [("boss", 7077)]),
        ("spark://a:1,b:2", [("a", 1), ("b", 2)]),
        ("sc://server/;use_ssl=true;token=a,b", [("server", 15002)]),
        ("sc://[::1]:5", [("::1", 5)]),
        ("yarn", []),
        ("k8s://https://host:443", []),
        ("local[2,4]", []),
    ],
)
def test_endpoints(address: str, found: list[tuple[str, int]]) -> None:
    assert endpoints(address) == found


def test_one_that_answers_is_enough(port: int, nobody: int) -> None:
    check_reachable(f"spark://127.0.0.1:{nobody},127.0.0.1:{port}", {})


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_nobody_there(scheme: str, nobody: int) -> None:
    with pytest.raises(ClusterUnreachable, match=rf"127\.0\.0\.1, port {nobody}: Connection refused") as caught:
        check_reachable(f"{scheme}://127.0.0.1:{nobody}", {})
    assert caught.value.exit_code == 3


def test_behind_a_proxy_connect_finds_its_own_way(nobody: int) -> None:
    check_reachable(f"sc://127.0.0.1:{nobody}", {"HTTPS_PROXY": "http://proxy:3128"})
    with pytest.raises(ClusterUnreachable):
        check_reachable(f"spark://127.0.0.1:{nobody}", {"HTTPS_PROXY": "http://proxy:3128"})
