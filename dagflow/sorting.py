"""NumPy's sorts on AMD's Zen 4: five times as fast without AVX-512."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

VARIABLE = "NPY_DISABLE_CPU_FEATURES"


def sort_without_avx512(processors: str = "/proc/cpuinfo") -> None:
    """Tell NumPy on Zen 4 to leave AVX-512 out, before it is imported, in this process and those that it starts.

    Its sorts store by an instruction that takes over a hundred cycles there (numpy/x86-simd-sort#6), and joins and groups are
    mostly sorts. Where the variable is set, to nothing too, it stays as it is.
    """
    if VARIABLE in os.environ or "numpy" in sys.modules:
        return
    try:
        with open(processors, encoding="utf-8") as file:
            is_slow = is_zen4(file.read(8192))  # of the first processors
        if is_slow and _numpy_version() >= (2, 4):  # earlier ones have other names for these features
            os.environ[VARIABLE] = "X86_V4 AVX512_ICL"
    except OSError:  # no Linux
        return


def is_zen4(processors: str) -> bool:
    r"""Return whether the text of /proc/cpuinfo tells of Zen 4: the first of AMD with AVX-512; Zen 5 is of the next family.

    >>> is_zen4("vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu avx2 avx512f\n")
    True
    """
    return re.search(r"(?s)AuthenticAMD\ncpu family\t: 25\n.*\nflags\t.* avx512f", processors) is not None


def _numpy_version() -> tuple[int, ...]:
    """Return the version of the installed NumPy, which is not imported."""
    found = importlib.util.find_spec("numpy")
    if found is None or found.origin is None:
        return (0,)
    text = Path(found.origin).with_name("version.py").read_text(encoding="utf-8")
    numbers = re.search(r'^version = "(\d+)\.(\d+)', text, re.MULTILINE)
    return (0,) if numbers is None else tuple(map(int, numbers.groups()))
