"""The search for cyclic garbage is paused, and is on again afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from dagflow.runtime.garbage import collection_paused


@pytest.fixture(params=[True, False])
def is_enabled(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_it_is_as_before_afterwards(is_enabled: bool) -> None:
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled() == is_enabled


def test_it_is_as_before_after_an_error(is_enabled: bool) -> None:
    @collection_paused()
    def fail() -> None:
        raise ValueError(gc.isenabled())

    with pytest.raises(ValueError, match="False"):
        fail()
    assert gc.isenabled() == is_enabled
