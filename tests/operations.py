"""The number of operations that a call takes: a measure of work that does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def operations(call: Callable[[], object]) -> int:
    """Return how many bytecode instructions a call runs in this thread. Loops within functions of C are not counted."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace = trace  # Python 3.13 lets a frame ask for instructions only if it is traced
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 reports instructions only if a frame wants them when tracing begins
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def growth(call: Callable[[int], Callable[[], object]], size: int, times: int = 8) -> float:
    """Return how many times the operations of a call grow per unit when its work grows: 1 is linear, `times` quadratic.

    `call(size)` prepares the work of a size, which is not counted, and returns the call.

    >>> 0.9 < growth(lambda size: lambda: [n for n in range(size)], 100) < 1.1
    True
    >>> growth(lambda size: lambda: [m for n in range(size) for m in range(size)], 100) > 7
    True
    """
    return operations(call(size * times)) / operations(call(size)) / times
