"""Plain data of a million items: what is written and copied of them."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import FileBlockMetadata
from dagflow.model.types import plain_data
from dagflow.model.types.plain_data import Encoded, decode, dumps, encode, loads
from tests.model.types.test_plain_data import PLAIN

BLOCK = FileBlockMetadata(3, "a.txt", 0, 10, 20)


@pytest.mark.parametrize(
    "block",
    [BLOCK, attrs.evolve(BLOCK, is_last_block=True, as_planned=False, modified_ns=0, version="", record_end="\n")],
    ids=["defaults", "others"],
)
def test_blocks_come_back_without_the_fields_that_have_their_defaults(block: FileBlockMetadata) -> None:
    encoded = encode(block, "a block")
    assert decode(loads(dumps(encoded)), FileBlockMetadata) == block
    assert ("version" in encoded) is (block.version is not None)


def test_blocks_that_were_written_with_all_fields_are_read() -> None:
    assert decode(attrs.asdict(BLOCK), FileBlockMetadata) == BLOCK


@pytest.mark.parametrize("lacks", ["block_id", "start", "previous_block_id"])
def test_a_block_that_lacks_another_field_is_refused(lacks: str) -> None:
    fields = attrs.asdict(BLOCK)
    del fields[lacks]
    with pytest.raises(KeyError, match=lacks):
        decode(fields, FileBlockMetadata)


def test_shared_data_is_not_copied_and_looks_the_same() -> None:
    items = [["port", encode(BLOCK, "a block")], ["port", {"data": {"$bytes": "YQ=="}}], ["port", {"$bytes": "YQ=="}]]
    record: dict[str, Any] = {"items": {"lines": items[:1]}, "others": items, "tuple": (1, 2), "bytes": b"a", "empty": {}}
    shared = encode(record, "a record", shares=True)
    assert shared == encode(record, "a record")
    assert shared["items"]["lines"] is record["items"]["lines"]
    assert decode(shared)["others"] == items


def test_without_sharing_everything_is_copied() -> None:
    kept = {"counts": [1, 2], "by_name": {"a": 1}}
    encoded = encode(kept, "a state")
    kept["counts"].append(3)  # type: ignore[attr-defined]
    assert encoded == {"counts": [1, 2], "by_name": {"a": 1}}


@given(st.lists(PLAIN, max_size=12), st.sampled_from([1, 2, 5, 100]))
def test_a_list_of_json_data_is_written_as_any_other_list_though_nothing_copies_it(values: list[Any], many: int) -> None:
    items = [["port", encode(value, "an item")] for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_data, "_MANY", many)
        record = encode({"items": {"lines": Encoded(items)}, "empty": Encoded()}, "a plan", shares=True)
        assert type(record["items"]["lines"]) is Encoded
        written = dumps(record)
    assert written == dumps(encode({"items": {"lines": items}, "empty": []}, "a plan"))
    assert decode(loads(written))["items"]["lines"] == items


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 8, 9])
def test_long_lists_are_written_in_pieces_as_if_at_once(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"a": {"items": [[number, {"ä\udc80": None}] for number in range(length)]}, "b": [], "c": {}, "d": list(range(length))}
    whole = dumps(data)
    monkeypatch.setattr(plain_data, "_MANY", 4)
    assert dumps(data) == whole
    assert json.loads(whole) == data
    assert len(list(plain_data._pieces(data))) == (1 if length <= 4 else 9 + 2 * -(-length // 4) + 2)
