"""Fixtures of the tests that kill processes."""

from __future__ import annotations

from tests.cluster.places import begin, place
from tests.logs.conftest import mock_cluster, nats_server, relayed_tansu
from tests.operators.conftest import server
from tests.storage.s3.conftest import bucket, s3_server

__all__ = ["begin", "bucket", "mock_cluster", "nats_server", "place", "relayed_tansu", "s3_server", "server"]
