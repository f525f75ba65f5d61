"""Pieces that a fast parser refuses: what their parts give is what the whole gives, places of bad rows included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.scan import Format
from dagflow.testing import run_operator
from dagflow.testing.files import blocks_of
from operators import CsvFormat, JsonLinesFormat, ScanReader
from operators.contexts import Piece
from operators.formats.text import lines
from operators.formats.text.lines import parts_of
from tests.tiers import examples

FORMATS: dict[str, tuple[Format, bytes, list[bytes]]] = {
    "csv": (
        CsvFormat(extra_fields="bad", comment="#"),
        b"n,s\n",
        [b"1,a\n", b"-7,\n", b'3,"x\ny"\n', b"no,b\n", b"4\n", b"5,c,d\n", b"# 6\n", b"\n", b"8,\xff\n", b'9,q"q\n'],
    ),
    "json": (
        JsonLinesFormat(),
        b"",
        [
            b'{"n": 1, "s": "a"}\n',
            b'{"s": null}\n',
            b'{"n": "x"}\n',
            b'{"n": 2.5}\n',
            b"\n",
            b"[1]\n",
            b'{"n"\n',
            b'{"n": "4"}\n',
        ],
    ),
}


@pytest.mark.parametrize("kind", FORMATS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(25))
@given(data=st.data(), part_bytes=st.integers(1, 60), is_cut=st.booleans())
def test_parts_give_what_the_whole_gives(tmp_path: Path, kind: str, data: st.DataObject, part_bytes: int, is_cut: bool) -> None:
    format_, head, choices = FORMATS[kind]
    path = tmp_path / "a.txt"
    path.write_bytes(head + b"".join(data.draw(st.lists(st.sampled_from(choices), max_size=30))))

    def read(odd_bytes: int) -> tuple[list[Any], list[Any]]:
        reader = ScanReader(format_, schema="n: int64, s: string", on_bad_row="route")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(lines, "ODD_BYTES", odd_bytes)
            found = run_operator(reader, {"blocks_metadata_input": blocks_of(str(path), 40 if is_cut else None)})
        return found["batches"], sorted(found.get("errors", []), key=lambda row: row.position)

    assert read(part_bytes) == read(1 << 20)


def test_parts_are_all_records_in_order() -> None:
    piece = Piece.of_slices(b"aabbbbccc", [0, 2, 6, 9], position=7)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lines, "ODD_BYTES", 4)
        assert [(start, part.bytes_list()) for start, part in parts_of(piece)] == [(0, [b"aa"]), (1, [b"bbbb"]), (2, [b"ccc"])]
    assert [part for _, part in parts_of(piece)] == [piece]
