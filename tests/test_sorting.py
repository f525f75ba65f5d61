from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dagflow.sorting import VARIABLE, is_zen4

ZEN4 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu avx2 avx512f avx512dq\n"


@pytest.mark.parametrize(
    ("processors", "expected"),
    [
        (ZEN4, True),
        (ZEN4.replace(" avx512f avx512dq", ""), False),  # Zen 3
        (ZEN4.replace(": 25", ": 26"), False),  # Zen 5
        (ZEN4.replace("AuthenticAMD", "GenuineIntel"), False),
        ("", False),
    ],
)
def test_only_zen_4_is_slow(processors: str, expected: bool) -> None:
    assert is_zen4(processors) is expected


@pytest.mark.parametrize("given", [None, "", "AVX2"])
def test_the_variable_is_set_unless_somebody_has_set_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "cpuinfo").write_text(ZEN4)
    set_before = "" if given is None else f"os.environ[{VARIABLE!r}] = {given!r}; "
    code = (
        f"import os, sys; import dagflow; os.environ.pop({VARIABLE!r}, None); {set_before}"
        f"from dagflow.sorting import sort_without_avx512; sort_without_avx512(sys.argv[1]); print(os.environ.get({VARIABLE!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "cpuinfo"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("X86_V4 AVX512_ICL" if given is None else given)


def test_numpy_takes_the_variable_without_a_warning() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", "import dagflow; import numpy"], check=True)
