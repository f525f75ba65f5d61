"""Fixtures of the tests that kill processes."""

from __future__ import annotations

import os

import pytest

from tests.chaos.kills import SEED
from tests.cluster.places import begin, place
from tests.logs.conftest import mock_cluster, nats_server, relayed_tansu
from tests.operators.conftest import server
from tests.storage.s3.conftest import bucket, s3_server

__all__ = ["begin", "bucket", "mock_cluster", "nats_server", "place", "relayed_tansu", "s3_server", "seed", "server"]

FIXED_SEED = "97cb2753"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    """The seed of random moments: a fixed one in CI, another one each night; the variable CHAOS_SEED sets it for both."""
    is_long = request.node.get_closest_marker("nightly") is not None
    return os.environ.get(SEED) or (os.urandom(4).hex() if is_long else FIXED_SEED)
