from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import PlanMismatch, RecordDamaged, RecordMisplaced, RecordRefused
from dagflow.storage import MemoryStore, read_sealed, seal, seal_of, unseal
from dagflow.storage.records import sealed

NAMES = st.from_regex(r"[a-z-]{1,9}/[0-9]{10}", fullmatch=True)


@given(NAMES, st.binary(), st.dictionaries(NAMES, st.text()))
def test_what_was_sealed_comes_back(name: str, body: bytes, builds_on: dict[str, str]) -> None:
    stored = seal(name, body, builds_on)
    found = unseal(stored, name, "run")
    assert (found.name, found.body, found.builds_on, found.hash) == (name, body, builds_on, seal_of(stored))


@given(st.binary(), st.data())
def test_any_other_bytes_are_refused(body: bytes, data: st.DataObject) -> None:
    stored = seal("plan/0000000003", body, {"plan/0000000002": "sha256:ab"})
    at = data.draw(st.integers(0, len(stored) - 1))
    bit = data.draw(st.integers(0, 7))
    flipped = stored[:at] + bytes([stored[at] ^ 1 << bit]) + stored[at + 1 :]
    for damaged in (flipped, stored[:at], stored + b"\n", stored + stored):
        with pytest.raises(RecordDamaged):
            unseal(damaged, "plan/0000000003", "run")


def test_the_seal_is_that_of_all_lines_before_it() -> None:
    *before, last = seal("plan/3", b"one\ntwo").splitlines(keepends=True)
    assert last.decode() == f"sha256:{hashlib.sha256(b''.join(before)).hexdigest()}\n"


def test_a_record_under_another_name_is_out_of_place() -> None:
    store = MemoryStore()
    store.create("done/4", seal("done/3", b"{}"))
    with pytest.raises(RecordMisplaced) as caught:
        read_sealed(store, "done/4")
    assert str(caught.value) == (
        "memory://store/done/4 is out of place (it is done/3)\n"
        "  help: restore it from a copy of the run folder, or launch with --fresh to start over"
    )
    assert read_sealed(store, "done/5") is None


@pytest.mark.parametrize(
    ("name", "help"), [("plan/0", "restore it from a copy"), ("reports/0.r.s0-0000", "launch again"), ("claims/0", "launch")]
)
def test_the_way_out_depends_on_whether_it_is_needed(name: str, help: str) -> None:
    with pytest.raises(RecordRefused, match=f"help: {help}"):
        unseal(b"", name, "run")


def test_other_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanMismatch, match="format 4, this one reads 5"):
        unseal(b'{"format":4,"window":0}', "plan/0", "run")  # records were not sealed then
    monkeypatch.setattr(sealed, "FORMAT", 6)
    later = seal("plan/0", b"")
    monkeypatch.undo()
    with pytest.raises(PlanMismatch, match="format 6, this one reads 5"):
        unseal(later, "plan/0", "run")
