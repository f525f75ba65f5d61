"""Fixtures of the tests that kill processes."""

from __future__ import annotations

from tests.cluster.places import begin, place
from tests.operators.conftest import server
from tests.storage.s3.conftest import bucket, s3_server

__all__ = ["begin", "bucket", "place", "s3_server", "server"]
