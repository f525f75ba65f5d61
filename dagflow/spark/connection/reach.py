"""A check that a server listens at the address of a cluster: done first, since Spark tries for minutes."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping

from dagflow.spark.errors import ClusterUnreachable

SECONDS = 5.0
ANSWER = 20.0
_PORTS = {"spark": 7077, "sc": 15002}
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


def check_reachable(address: str, environ: Mapping[str, str] | None = None) -> None:
    """Connects to the hosts of `spark://host:port,host:port` or `sc://host:port/;options`; one that answers is enough.

    Raises ClusterUnreachable. Other masters (yarn, k8s://, local) are left to Spark, and so is Connect behind a proxy.
    """
    hosts = endpoints(address)
    environ = os.environ if environ is None else environ
    if not hosts or (address.startswith("sc://") and any(environ.get(n) or environ.get(n.upper()) for n in _PROXIES)):
        return
    reason = ""
    for host, port in hosts:
        try:
            with socket.create_connection((host, port), SECONDS):
                return
        except OSError as error:
            reason = f"{host}, port {port}: {error.strerror or error}"
    raise ClusterUnreachable(master=address, reason=reason)


def check_answers(remote: str, seconds: float = ANSWER) -> None:
    """Waits until what listens at an address of Spark Connect speaks its protocol. Raises ClusterUnreachable.

    Each call would be tried again for minutes.
    """
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except grpc.FutureTimeoutError as error:
        raise ClusterUnreachable(master=remote, reason=f"it does not speak gRPC, or not within {seconds:g} s") from error
    finally:
        channel.close()


def endpoints(address: str) -> list[tuple[str, int]]:
    """The hosts and ports of an address.

    >>> endpoints("spark://a:1,b"), endpoints("sc://[::1]:9/;token=x"), endpoints("local[2]")
    ([('a', 1), ('b', 7077)], [('::1', 9)], [])
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in _PORTS:
        return []
    addresses = []
    for one in rest.partition("/")[0].split(","):
        match = re.fullmatch(r"\[?(.+?)\]?(?::(\d+))?", one)
        if match is not None:
            addresses.append((match[1], int(match[2] or _PORTS[scheme])))
    return addresses
