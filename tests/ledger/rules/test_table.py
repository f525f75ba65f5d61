"""Every rule has a chain that breaks it and no other; without the rule, the chain passes: no rule is there in vain."""

from __future__ import annotations

import pickle

import attrs
import pytest

import dagflow.ledger.rules.table as table
from dagflow.ledger import (
    DERIVATIVE,
    RULES,
    AddData,
    Checkpoint,
    EntryRef,
    ExecuteQuery,
    InputSlice,
    KeptFiles,
    Ledger,
    OffsetInterval,
    SchemaField,
    Seed,
    SetSchema,
    SetSource,
    SetTransform,
    SourceState,
    hash_bytes,
)
from dagflow.ledger.errors import InputDiverged, LedgerRuleError
from tests.ledger.chains import HASH, SCHEMA, chained, root, rows, sealed, stored, txn

ROOT = Seed(dataset_id="d")
DERIVED = Seed(dataset_id="e", dataset_kind=DERIVATIVE)
ONE_INPUT = SetTransform(inputs=("d",), plan_hash="p")
STATE = Checkpoint(hash=hash_bytes(b"state"), size=5)
LATER = Checkpoint(hash=hash_bytes(b"later"), size=5)
LOGS = SourceState(name="logs", kind="k", value="v")
FIRST = AddData(txn=txn(0), new_data=rows(0, 10))
B3, B5 = EntryRef(3, HASH), EntryRef(5, HASH)
READ = ExecuteQuery(txn=txn(0), inputs=(InputSlice(dataset_id="d", new_block=B3, new_offset=9, watermark=7),), new_watermark=7)


def again(**more):
    """A query that follows READ."""
    own = {name: more.pop(name) for name in list(more) if name not in attrs.fields_dict(InputSlice)}
    one = {"dataset_id": "d", "prev_block": B3, "new_block": B5, "prev_offset": 9, "new_offset": 19, "watermark": 7, **more}
    return ExecuteQuery(**{"txn": txn(1), "inputs": (InputSlice(**one),), "new_watermark": 7, **own})


def sliced(**changes):
    return AddData(txn=txn(0), new_data=attrs.evolve(rows(0, 10), **changes))


def filed(**changes):
    data = rows(0, 10)
    return AddData(txn=txn(0), new_data=attrs.evolve(data, files=(attrs.evolve(data.files[0], **changes),)))


def halves():
    return (attrs.evolve(rows(0, 5).files[0], path="a"), attrs.evolve(rows(5, 5).files[0], path="b"))


def keeping(files, replaces=True):
    data = attrs.evolve(rows(10, 5), replaces=replaces, kept=(KeptFiles(schema=1, files=files),))
    return AddData(txn=txn(1), prev_offset=9, new_data=data)


def field(name="value", type="string", optional=False):
    return SchemaField(name=name, type=type, optional=optional)


# The last event of each chain breaks the rule. "name, case" where a rule has several.
EVENTS = {
    "one_seed": [ROOT, Seed(dataset_id="other")],
    "first_is_seed": [SetSource(name="s")],
    "event_of_kind": [DERIVED, SCHEMA, SetSource(name="s")],
    "event_of_kind, data of a derivative": [DERIVED, SCHEMA, FIRST],
    "event_of_kind, query of a root": [ROOT, SCHEMA, SetTransform(inputs=("d",), plan_hash="p")],
    "event_of_kind, unheard of": [Seed(dataset_id="d", dataset_kind="wild")],
    "offset_carried": [ROOT, SCHEMA, FIRST, AddData(txn=txn(1), prev_offset=8, new_data=rows(9, 5))],
    "offset_carried, forgotten": [ROOT, SCHEMA, FIRST, AddData(txn=txn(1), new_watermark=1)],
    "offset_carried, first": [ROOT, SCHEMA, AddData(txn=txn(0), prev_offset=9, new_data=rows(10, 5))],
    "offset_carried, over no data": [
        ROOT,
        SCHEMA,
        FIRST,
        AddData(txn=txn(1), prev_offset=9, new_watermark=1),
        AddData(txn=txn(2), prev_offset=0, new_watermark=2),
    ],
    "checkpoint_carried": [
        ROOT,
        AddData(txn=txn(0), new_checkpoint=STATE),
        AddData(txn=txn(1), prev_checkpoint=HASH, new_checkpoint=LATER),
    ],
    "checkpoint_carried, forgotten": [
        ROOT,
        AddData(txn=txn(0), new_checkpoint=STATE),
        AddData(txn=txn(1), new_checkpoint=STATE, new_watermark=1),
    ],
    "checkpoint_carried, first": [ROOT, AddData(txn=txn(0), prev_checkpoint=HASH, new_watermark=1)],
    "watermark_carried": [ROOT, AddData(txn=txn(0), new_watermark=5), AddData(txn=txn(1), new_watermark=4)],
    "watermark_carried, vanishes": [
        ROOT,
        SCHEMA,
        AddData(txn=txn(0), new_watermark=5),
        AddData(txn=txn(1), new_data=rows(0, 1)),
    ],
    "sources_carried": [ROOT, AddData(txn=txn(0), sources={"logs": LOGS}), AddData(txn=txn(1), new_watermark=1)],
    "sources_named": [ROOT, AddData(txn=txn(0), sources={"other": LOGS})],
    "window_new": [ROOT, AddData(txn=txn(1), new_watermark=1), AddData(txn=txn(1, attempt="b"), new_watermark=2)],
    "window_new, goes back": [ROOT, AddData(txn=txn(1), new_watermark=1), AddData(txn=txn(0), new_watermark=2)],
    "window_new, negative": [ROOT, AddData(txn=txn(-1), new_watermark=1)],
    "offsets_sequential": [ROOT, SCHEMA, AddData(txn=txn(0), new_data=rows(1, 5))],
    "offsets_sequential, later": [ROOT, SCHEMA, FIRST, AddData(txn=txn(1), prev_offset=9, new_data=rows(11, 5))],
    "offsets_sequential, one row": [
        ROOT,
        SCHEMA,
        AddData(txn=txn(0), new_data=rows(0, 1)),
        AddData(txn=txn(1), prev_offset=0, new_data=rows(0, 1, path="b")),
    ],
    "interval_in_order": [
        ROOT,
        SCHEMA,
        AddData(
            txn=txn(0),
            new_data=attrs.evolve(
                rows(0, 10),
                interval=OffsetInterval(0, -1),
                files=(attrs.evolve(rows(0, 1).files[0], interval=OffsetInterval(0, -1), rows=0),),
            ),
        ),
    ],
    "offset_in_range": [
        ROOT,
        SCHEMA,
        AddData(txn=txn(0), new_data=rows(0, 2**63 - 1)),
        AddData(txn=txn(1), prev_offset=2**63 - 2, new_data=rows(2**63 - 1, 2, path="b")),
    ],
    "schema_known": [ROOT, FIRST],
    "schema_in_effect": [ROOT, SCHEMA, sliced(schema_hash=HASH)],
    "slice_has_files": [ROOT, SCHEMA, sliced(files=())],
    "files_tile": [ROOT, SCHEMA, sliced(files=(halves()[0],))],
    "files_tile, gap": [ROOT, SCHEMA, sliced(files=(halves()[0], attrs.evolve(rows(6, 4).files[0], path="b")))],
    "files_tile, order": [ROOT, SCHEMA, sliced(files=halves()[::-1])],
    "rows_match": [ROOT, SCHEMA, filed(rows=9)],
    "path_inside": [ROOT, SCHEMA, filed(path="../other/part")],
    "path_inside, absolute": [ROOT, SCHEMA, filed(path="/etc/passwd")],
    "path_inside, empty": [ROOT, SCHEMA, filed(path="")],
    "file_once": [ROOT, SCHEMA, sliced(files=tuple(attrs.evolve(each, path="a") for each in halves()))],
    "kept_before, nothing is replaced": [ROOT, SCHEMA, FIRST, keeping(rows(0, 10).files, replaces=False)],
    "kept_before, order": [ROOT, SCHEMA, sliced(files=halves()), keeping(halves()[::-1])],
    "kept_before, later rows": [ROOT, SCHEMA, FIRST, keeping(rows(10, 5, path="b").files)],
    "sizes_positive": [ROOT, SCHEMA, filed(size=-1)],
    "sizes_positive, checkpoint": [ROOT, AddData(txn=txn(0), new_checkpoint=attrs.evolve(STATE, size=-1))],
    "something_added": [ROOT, AddData(txn=txn(0), new_watermark=1), AddData(txn=txn(1), new_watermark=1)],
    "something_added, first": [ROOT, AddData(txn=txn(0))],
    "something_added, all carried": [
        ROOT,
        SCHEMA,
        attrs.evolve(FIRST, new_checkpoint=STATE, sources={"logs": LOGS}),
        AddData(txn=txn(1), prev_offset=9, prev_checkpoint=STATE.hash, new_checkpoint=STATE, sources={"logs": LOGS}),
    ],
    "something_executed": [DERIVED, SCHEMA, ONE_INPUT, READ, again(new_block=None, new_offset=None)],
    "something_executed, first": [
        DERIVED,
        SCHEMA,
        ONE_INPUT,
        ExecuteQuery(txn=txn(0), inputs=(InputSlice(dataset_id="d"),)),
    ],
    "transform_known": [DERIVED, SCHEMA, READ],
    "inputs_as_declared": [
        DERIVED,
        SCHEMA,
        SetTransform(inputs=("d", "f"), plan_hash="p"),
        attrs.evolve(READ, new_watermark=None),
    ],
    "inputs_as_declared, order": [
        DERIVED,
        SCHEMA,
        SetTransform(inputs=("f", "d"), plan_hash="p"),
        attrs.evolve(READ, inputs=(*READ.inputs, InputSlice(dataset_id="f", watermark=7))),
    ],
    "input_entry_carried": [DERIVED, SCHEMA, ONE_INPUT, READ, again(prev_block=EntryRef(2, HASH))],
    "input_entry_carried, another hash": [
        DERIVED,
        SCHEMA,
        ONE_INPUT,
        READ,
        again(prev_block=EntryRef(3, hash_bytes(b"x"))),
    ],
    "input_entry_carried, first": [
        DERIVED,
        SCHEMA,
        ONE_INPUT,
        attrs.evolve(READ, inputs=(attrs.evolve(READ.inputs[0], prev_block=EntryRef(1, HASH)),)),
    ],
    "input_offset_carried": [DERIVED, SCHEMA, ONE_INPUT, READ, again(prev_offset=8)],
    "input_offset_carried, first": [
        DERIVED,
        SCHEMA,
        ONE_INPUT,
        attrs.evolve(READ, inputs=(attrs.evolve(READ.inputs[0], prev_offset=4),)),
    ],
    "input_entry_new": [DERIVED, SCHEMA, ONE_INPUT, READ, again(new_block=B3)],
    "input_offset_new": [DERIVED, SCHEMA, ONE_INPUT, READ, again(new_offset=9)],
    "input_offset_new, less": [DERIVED, SCHEMA, ONE_INPUT, READ, again(new_offset=5)],
    "input_offset_new, negative": [
        DERIVED,
        SCHEMA,
        ONE_INPUT,
        attrs.evolve(READ, inputs=(attrs.evolve(READ.inputs[0], new_offset=-1),)),
    ],
    "input_rows_have_entry": [DERIVED, SCHEMA, ONE_INPUT, READ, again(new_block=None, new_data=rows(0, 1))],
    "input_watermark_carried": [DERIVED, SCHEMA, ONE_INPUT, READ, again(watermark=6)],
    "input_watermark_carried, vanishes": [DERIVED, SCHEMA, ONE_INPUT, READ, again(watermark=None)],
    "watermark_behind_inputs": [DERIVED, SCHEMA, ONE_INPUT, READ, again(new_watermark=8)],
    "watermark_behind_inputs, one unknown": [
        DERIVED,
        SCHEMA,
        SetTransform(inputs=("d", "f"), plan_hash="p"),
        attrs.evolve(READ, inputs=(*READ.inputs, InputSlice(dataset_id="f"))),
    ],
    "transform_has_inputs": [DERIVED, SetTransform(inputs=(), plan_hash="p")],
    "transform_inputs_once": [DERIVED, SetTransform(inputs=("d", "d"), plan_hash="p")],
    "transform_inputs_named": [DERIVED, SetTransform(inputs=("",), plan_hash="p")],
    "transform_changes": [DERIVED, ONE_INPUT, ONE_INPUT],
    "source_changes": [ROOT, SetSource(name="s"), SetSource(name="t"), SetSource(name="s")],
    "schema_changes": [ROOT, SCHEMA, SCHEMA],
    "schema_fields_once": [ROOT, SetSchema(schema=(field(), field()))],
    "schema_keeps_fields": [ROOT, SCHEMA, SetSchema(schema=(field("other", optional=True),))],
    "schema_keeps_fields, any": [ROOT, SCHEMA, SetSchema(schema=())],
    "schema_keeps_types": [ROOT, SCHEMA, SetSchema(schema=(field(type="int64"),))],
    "schema_adds_optional": [ROOT, SCHEMA, SetSchema(schema=(field(), field("other")))],
    "schema_keeps_optionality": [ROOT, SCHEMA, SetSchema(schema=(field(optional=True),))],
}

GOOD = chained([ROOT, SCHEMA, FIRST])
ENTRIES = {
    "linked": {"prev_hash": HASH},
    "linked, cut loose": {"prev_hash": None},
    "time_not_earlier": {"system_time": 0},
    "format_not_older": {"format": 0},
    "numbers_carried": {"carried": attrs.evolve(GOOD[2].carried, data=1)},
    "numbers_carried, rows": {"carried": attrs.evolve(GOOD[2].carried, rows=None)},
    "numbers_carried, windows": {"carried": attrs.evolve(GOOD[2].carried, windows={"app": 7})},
    "numbers_carried, kinds": {"carried": attrs.evolve(GOOD[2].carried, kinds=())},
    "numbers_carried, schema": {"carried": attrs.evolve(GOOD[2].carried, schema=0)},
    "numbered": {"seq": 3, "carried": attrs.evolve(GOOD[2].carried, data=3, rows=3)},
}

CHAINS = {name: chained(events) for name, events in EVENTS.items()}
CHAINS |= {name: [*GOOD[:2], sealed(attrs.evolve(GOOD[2], **changes))] for name, changes in ENTRIES.items()}
BY_NAME = {rule.name: rule for rule in RULES}


def checked(entries):
    """All errors of a chain; of those before the last entry there must be none."""
    before = table.ChainState()
    for entry in entries[:-1]:
        assert list(table.broken_rules(before, entry)) == []
        before = before.after(entry)
    return list(table.broken_rules(before, entries[-1]))


def test_every_rule_has_a_chain_that_breaks_it():
    assert {name.partition(",")[0] for name in CHAINS} == set(BY_NAME)
    codes = [rule.code for rule in RULES]
    assert len({*codes, InputDiverged.code, LedgerRuleError.code}) == len(codes) + 2
    assert all(rule.code == rule.error.code for rule in RULES if rule.error is not LedgerRuleError)


@pytest.mark.parametrize("name", CHAINS)
def test_a_broken_rule_is_named(name):
    found, rule = checked(CHAINS[name]), BY_NAME[name.partition(",")[0]]
    assert {(type(each), each.code) for each in found} == {(rule.error, rule.code)}
    for each in found:
        assert (each.seq, each.expected == each.actual) == (CHAINS[name][-1].seq, False)
        assert each.field in str(each)
        assert rule.sentence in str(each)


@pytest.mark.parametrize("name", CHAINS)
def test_without_the_rule_nobody_sees_it(name, monkeypatch):
    removed = BY_NAME[name.partition(",")[0]]
    monkeypatch.setattr(table, "RULES", tuple(rule for rule in RULES if rule is not removed))
    assert checked(CHAINS[name]) == []


@pytest.mark.parametrize("name", CHAINS)
def test_verify_sees_it(name):
    store = stored(CHAINS[name])
    report = Ledger.open(store).verify()
    problems = [each for each in report.problems if isinstance(each, LedgerRuleError)]
    assert {each.rule for each in problems} == {BY_NAME[name.partition(",")[0]].code}


@pytest.mark.parametrize("name", [name for name in EVENTS if name not in ("window_new", "window_new, goes back")])
def test_append_refuses_it_and_writes_nothing(name):
    *good, bad = CHAINS[name]
    store = stored(good)
    names = store.names("ledger/")
    with pytest.raises(LedgerRuleError) as caught:
        Ledger.open(store, clock=lambda: 1.0).append(bad.event)
    assert (caught.value.rule, caught.value.seq) == (BY_NAME[name.partition(",")[0]].code, bad.seq)
    assert pickle.loads(pickle.dumps(caught.value)).code == caught.value.rule
    assert store.names("ledger/") == names


def test_the_words_of_an_error():
    with pytest.raises(LedgerRuleError) as caught:
        root().append(AddData(txn=txn(0), new_data=rows(1, 5)))
    assert str(caught.value) == (
        "entry 2: new_data.interval.start is 1, expected 0 (rule: New data begins at prev_offset + 1, at 0 if there was none)"
    )
    assert (caught.value.seq, caught.value.expected, caught.value.actual) == (2, 0, 1)


# ------------------------------------------------------------------------------------------------------ what is allowed


@pytest.mark.parametrize(
    "events",
    [
        [ROOT, SCHEMA, AddData(txn=txn(0), new_data=rows(0, 1)), AddData(txn=txn(1), prev_offset=0, new_data=rows(1, 1))],
        [ROOT, AddData(txn=txn(0), sources={"logs": LOGS})],
        [ROOT, AddData(txn=txn(0), new_checkpoint=STATE)],
        [ROOT, AddData(txn=txn(0), new_checkpoint=STATE), AddData(txn=txn(1), prev_checkpoint=STATE.hash)],
        [ROOT, SCHEMA, AddData(txn=txn(0), new_data=rows(0, 2**63 - 1))],
        [ROOT, SCHEMA, sliced(files=halves())],
        [ROOT, AddData(txn=txn(0), new_watermark=0), AddData(txn=txn(0, "other"), new_watermark=1)],
        [DERIVED, SCHEMA, ONE_INPUT, READ, again()],
        [DERIVED, SCHEMA, ONE_INPUT, READ, again(new_block=None, new_offset=None, watermark=9, new_watermark=9)],
        [DERIVED, ONE_INPUT, ExecuteQuery(txn=txn(0), inputs=(InputSlice(dataset_id="d", new_block=B3),))],
        [ROOT, SCHEMA, SetSchema(schema=(field("new", optional=True), field()))],
        [ROOT, SetSource(name="s"), SetSource(name="s", merge="ledger"), SetSource(name="s")],
        # a new input begins at nothing and holds the watermark where it is; one that stays goes on
        [
            DERIVED,
            SCHEMA,
            ONE_INPUT,
            READ,
            SetTransform(inputs=("d", "f"), plan_hash="q"),
            attrs.evolve(again(), inputs=(*again().inputs, InputSlice(dataset_id="f", new_block=B3))),
        ],
    ],
)  # fmt: skip
def test_what_is_allowed(events):
    assert checked(chained(events)) == []
