from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import InputOperator, MapState, OutputPort
from dagflow.errors import StateDeclaration, StateNotPlain
from dagflow.model.operator.map_state import TrackedDict
from dagflow.model.operator.state import freeze, state_fields
from dagflow.state.values import decode_state, encode_keys, encode_state


class Polled(InputOperator):
    etags = MapState[str, int]()
    output = OutputPort[str]()


KEYS = st.sampled_from("abcd")
VALUES = st.sampled_from([0, 1, 2, True, None, "x", 0.0, -0.0])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["set", "setdefault", "update", "or"]), KEYS, VALUES),
    st.tuples(st.sampled_from(["del", "pop", "pop or"]), KEYS, st.none()),
    st.tuples(st.sampled_from(["popitem", "clear", "save"]), st.none(), st.none()),
    st.tuples(st.just("replace"), st.dictionaries(KEYS, VALUES), st.none()),
)


def step(target: dict[Any, Any], what: str, key: Any, value: Any) -> Any:
    """Does the same with a TrackedDict and with a dict."""
    match what:
        case "set":
            target[key] = value
        case "setdefault":
            return target.setdefault(key, value)
        case "update":
            return target.update({key: value}, z=value)
        case "or":
            target |= [(key, value)]
        case "del":
            del target[key]
        case "pop":
            return target.pop(key)
        case "pop or":
            return target.pop(key, "nothing")
        case "popitem":
            return target.popitem()
        case "clear":
            return target.clear()
        case "replace" if isinstance(target, TrackedDict):
            target.replace(key)
        case "replace":
            target.clear()
            target.update(key)
    return None


def tried(*args: Any) -> Any:
    try:
        return step(*args)
    except KeyError as error:
        return type(error)


def same(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """With the same types, and the sign of zero."""
    return {k: repr(v) for k, v in one.items()} == {k: repr(v) for k, v in other.items()}


@given(st.lists(STEPS, max_size=30))
def test_it_is_a_dict_that_knows_what_has_changed(steps: list[tuple[str, Any, Any]]) -> None:
    kept: TrackedDict[str, Any] = TrackedDict()
    model: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    for what, key, value in steps:
        if what == "save":
            kept.saved()
            stored = dict(kept)
        elif what == "popitem" and list(kept) != list(model):
            continue  # `replace` leaves the order of what stays
        else:
            assert tried(kept, what, key, value) == tried(model, what, key, value)
        assert kept == model
        changes = kept.changes()
        assert not changes.assigned.keys() & set(changes.removed)
        replayed = {k: v for k, v in {**stored, **changes.assigned}.items() if k not in changes.removed}
        assert same(replayed, model)
        touched = [*changes.assigned, *changes.removed]
        assert same(changes.before, {k: stored[k] for k in touched if k in stored})


@given(st.lists(STEPS, max_size=8), st.lists(STEPS, max_size=8), st.lists(STEPS, max_size=8))
def test_it_rolls_back_to_savepoints(first: Any, second: Any, third: Any) -> None:
    kept: TrackedDict[str, Any] = TrackedDict({"a": 0})
    points = []
    for steps in (first, second, third):
        points.append((kept.savepoint(), dict(kept)))
        for what, key, value in steps:
            if what != "save":
                tried(kept, what, key, value)
    for point, content in reversed(points):
        kept.roll_back(point)
        assert same(kept, content)
    assert kept.changes().assigned.keys() <= {"a"}, "only zeros of another type may count as changed"


def test_each_instance_has_its_own_and_it_begins_empty() -> None:
    one, other = Polled(), Polled()
    one.etags["a"] = 1
    assert (one.etags, other.etags) == ({"a": 1}, {})
    assert isinstance(state_fields(Polled)["etags"], MapState)


@pytest.mark.parametrize("frozen", [False, True])
def test_assigning_a_mapping_replaces_the_content(frozen: bool) -> None:
    operator = Polled()
    operator.etags.update(a=1, b=2)
    operator.etags.saved()
    if frozen:
        freeze(operator)
    before = operator.etags
    operator.etags = {"b": 2, "c": 3}  # type: ignore[assignment]
    assert operator.etags is before
    assert (before.changes().assigned, before.changes().removed) == ({"c": 3}, ["a"])
    with pytest.raises(TypeError, match="'etags' is a MapState: assign a mapping, not a list"):
        operator.etags = []  # type: ignore[assignment]


def test_it_does_not_travel_with_its_operator() -> None:
    operator = Polled()
    operator.etags.update({str(n): n for n in range(10_000)})
    data = pickle.dumps(operator)
    assert len(data) < 500
    assert pickle.loads(data).etags == {}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept)), copy.copy])
def test_copies_know_what_has_changed_and_go_their_own_way(copied: Any) -> None:
    kept: TrackedDict[str, Any] = TrackedDict({"a": [1], "b": 2})
    kept["c"] = 3
    del kept["b"]
    other = copied(kept)
    assert isinstance(other, TrackedDict)
    assert other.changes() == kept.changes()
    other["d"] = 4
    assert "d" not in kept
    assert "d" not in kept.changes().assigned


def test_a_merge_is_refused_and_says_what_to_write() -> None:
    assert MapState[str, int]().merge is None
    with pytest.raises(StateDeclaration, match=r"MapState: merge is not supported: .* write State\(factory=dict, merge=…\)"):
        MapState[str, int](merge=sum)
    with pytest.raises(StateDeclaration, match="MapState: partition_by is 3: give a function"):
        MapState[str, int](partition_by=3)  # type: ignore[arg-type]


def test_a_declaration_shows_the_state_that_keeps_it_whole() -> None:
    assert state_fields(Polled)["etags"].with_merge() == "etags = State[dict[str, int]](factory=dict, merge=merged)"  # type: ignore[attr-defined]


@given(st.dictionaries(st.one_of(st.text(), st.integers()), st.one_of(st.binary(), st.lists(st.integers()), st.none())))
def test_a_whole_map_comes_back_as_it_was(content: dict[Any, Any]) -> None:
    declared = MapState[Any, Any]()
    decoded = decode_state(declared, json.loads(json.dumps(encode_state(declared, content, "here"))))
    assert decoded == content
    assert isinstance(decoded, TrackedDict)
    assert decoded.changes().assigned == {}


@pytest.mark.parametrize("key", [True, 1.5, (1,), None, b"x"])
def test_keys_are_text_or_whole_numbers(key: Any) -> None:
    with pytest.raises(StateNotPlain, match="here holds a key of type"):
        encode_keys([key], "here")
