"""Code that travels keeps the name of its file, whichever cloudpickle is installed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from dagflow.runtime.stage.by_value import dumps, dumps_in_process

DUMPS = pytest.mark.parametrize("dump", [dumps, dumps_in_process])


def local_function() -> Callable[[str], int]:
    """Return a function that no module knows by name, with one of its own inside."""
    return lambda text: sum(int(each) for each in [text])


@DUMPS
def test_a_function_keeps_file_and_line(dump: Callable[[Any], bytes]) -> None:
    function = local_function()
    code = pickle.loads(dump(function)).__code__
    assert (code.co_filename, code.co_firstlineno) == (__file__, function.__code__.co_firstlineno)
    inner = [each for each in code.co_consts if hasattr(each, "co_filename")]
    assert [each.co_filename for each in inner] == [__file__] * len(inner)


@DUMPS
def test_a_generated_equality_is_known_as_such(dump: Callable[[Any], bytes]) -> None:
    @attrs.frozen
    class Local:
        name: str

    copy = pickle.loads(dump(Local("a")))
    assert type(copy).__eq__.__code__.co_filename == Local.__eq__.__code__.co_filename


@DUMPS
def test_equal_functions_have_equal_pickles(dump: Callable[[Any], bytes]) -> None:
    assert dump(local_function()) == dump(local_function())
