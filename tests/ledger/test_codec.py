"""One value, one encoding; and no other bytes are an entry."""

from __future__ import annotations

import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import EntryMalformed
from dagflow.ledger import (
    AddData,
    Checkpoint,
    EntryRef,
    ExecuteQuery,
    InputSlice,
    Seed,
    SetSource,
    SetTransform,
    SourceState,
    decode_entry,
    encode_entry,
    hash_bytes,
)
from dagflow.ledger.codec import canonical
from tests.ledger.chains import SCHEMA, chained, rows, sealed, txn

TEXT = st.text(max_size=8)
COUNT = st.integers(0, 2**63 - 1)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
JSON = st.dictionaries(TEXT, PLAIN, max_size=3)
UNKNOWN = st.dictionaries(st.sampled_from(["zz new", "aa new", "ß"]), PLAIN, max_size=2)
REF = st.builds(EntryRef, COUNT, TEXT, unknown=UNKNOWN)
STATE = st.builds(SourceState, name=TEXT, kind=TEXT, value=TEXT, unknown=UNKNOWN)
CHECKPOINT = st.builds(Checkpoint, hash=TEXT, size=COUNT, unknown=UNKNOWN)
INPUT = st.builds(
    InputSlice,
    dataset_id=TEXT,
    prev_block=st.none() | REF,
    new_block=st.none() | REF,
    prev_offset=st.none() | COUNT,
    new_offset=st.none() | COUNT,
    watermark=st.none() | st.integers(),
    unknown=UNKNOWN,
)
COMMON = {
    "txn": st.builds(txn, COUNT, TEXT, TEXT),
    "prev_offset": st.none() | COUNT,
    "new_data": st.none() | st.builds(rows, st.integers(0, 9), st.integers(1, 9)),
    "prev_checkpoint": st.none() | TEXT,
    "new_checkpoint": st.none() | CHECKPOINT,
    "new_watermark": st.none() | st.integers(),
    "extra": JSON,
    "unknown": UNKNOWN,
}
EVENTS = st.one_of(
    st.builds(Seed, dataset_id=TEXT, dataset_kind=TEXT, unknown=UNKNOWN),
    st.just(SCHEMA),
    st.builds(
        SetTransform, inputs=st.lists(TEXT, max_size=3).map(tuple), plan_hash=TEXT, spec=JSON, engine_version=st.none() | TEXT
    ),
    st.builds(SetSource, name=TEXT, spec=JSON, merge=TEXT, unknown=UNKNOWN),
    st.builds(AddData, **COMMON, sources=st.dictionaries(TEXT, STATE, max_size=2)),
    st.builds(ExecuteQuery, **COMMON, inputs=st.lists(INPUT, max_size=2).map(tuple)),
)


@given(EVENTS, UNKNOWN)
def test_what_was_written_is_read_again_and_written_the_same(event, unknown):
    entry = attrs.evolve(chained([event])[0], unknown=unknown)
    stored = encode_entry(entry)
    assert decode_entry(stored, 0) == entry
    assert encode_entry(decode_entry(stored, 0)) == stored


@given(EVENTS, st.data())
def test_no_single_changed_bit_goes_unseen(event, data):
    stored = bytearray(encode_entry(chained([event])[0]))
    bit = data.draw(st.integers(0, 8 * len(stored) - 1))
    stored[bit // 8] ^= 1 << bit % 8
    with pytest.raises(EntryMalformed):
        decode_entry(bytes(stored), 0)


@given(st.binary(max_size=60))
def test_garbage_is_no_entry(garbage):
    with pytest.raises(EntryMalformed):
        decode_entry(garbage, 0)


@given(st.text(max_size=5))
def test_text_of_all_kinds(text):
    assert json.loads(canonical(text)) == text


def test_names_that_are_no_utf8():
    name = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    assert json.loads(canonical(name)) == name
    data = rows(0, 1, path=name)
    entry = chained([AddData(txn=txn(0), new_data=data)])[0]
    assert decode_entry(encode_entry(entry), 0).event.new_data.files[0].path == name


def resealed(entry, change):
    """The bytes of an entry after a change of its JSON, with a seal that fits."""
    data = json.loads(encode_entry(entry).split(b"\n")[0])
    change(data)
    body = canonical(data) + b"\n"
    return body + canonical(hash_bytes(body)) + b"\n"


GOOD = chained([Seed(dataset_id="d"), SCHEMA, AddData(txn=txn(0), new_data=rows(0, 5), new_watermark=1)])[2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.pop("seq"), "entry lacks seq"),
        (lambda data: data["event"].pop("txn"), "entry.event lacks txn"),
        (lambda data: data["event"].pop("kind"), "entry.event has no kind"),
        (lambda data: data.update(seq="2"), "entry.seq is '2', not an integer"),
        (lambda data: data.update(seq=True), "entry.seq is 'True', not an integer"),
        (lambda data: data.update(event=[]), "entry.event is"),
        (lambda data: data["event"].update(prev_offset=None), "not in the canonical encoding"),
        (lambda data: data["event"].update(sources={}), "not in the canonical encoding"),
        (lambda data: data["event"]["new_data"].update(files={}), "entry.event.new_data.files is"),
    ],
)
def test_what_is_no_entry_is_told(change, reason):
    with pytest.raises(EntryMalformed, match=reason) as caught:
        decode_entry(resealed(GOOD, change), 2, "here")
    assert (caught.value.seq, caught.value.place) == (2, "here")


@pytest.mark.parametrize("text", ["1.0", "1e3", "NaN", "-Infinity"])
def test_floats_have_no_place(text):
    body = encode_entry(GOOD).split(b"\n")[0].replace(b'"new_watermark":1', b'"new_watermark":' + text.encode()) + b"\n"
    with pytest.raises(EntryMalformed, match="is not an integer"):
        decode_entry(body + canonical(hash_bytes(body)) + b"\n", 2)
    with pytest.raises(ValueError, match=r"value is 1\.5"):
        canonical(1.5)


def test_fields_of_a_newer_version_stay_where_they_were():
    stored = resealed(
        GOOD, lambda data: (data["event"].update(zz=[1]), data["event"]["new_data"]["files"][0].update(codec="zstd"))
    )
    entry = decode_entry(stored, 2)
    assert entry.event.unknown == {"zz": [1]}
    assert entry.event.new_data.files[0].unknown == {"codec": "zstd"}
    assert encode_entry(entry) == stored
    assert sealed(entry) == entry
