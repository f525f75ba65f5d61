from __future__ import annotations

import pickle

import pytest

from dagflow.errors import RangeError
from dagflow.ranges import ByteKey, errors

KEY = ByteKey(b"\x01\xab")
EXAMPLES: list[RangeError] = [
    errors.NoRange(start=5, stop=4),
    errors.FirstNotSplitPoint(position=3, start=0, stop=9),
    errors.RecordBeforeRange(position=KEY, start=b"\x02"),
    errors.PositionsDecrease(position=3, last=4),
    errors.SplitPointTwice(position=KEY, last=KEY),
    errors.UnboundedRange(start=7),
    errors.NoFraction(fraction=1.5),
    errors.KeyOutsideRange(key=KEY, start=b"\x02", stop=b""),
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_error_says_its_values_and_travels(example: RangeError) -> None:
    assert str(pickle.loads(pickle.dumps(example))) == str(example)
    assert isinstance(example, ValueError)
    assert example.is_fatal
    for value in vars(example).values():
        assert (
            (f"[{value.hex()}]" if value else "no end") in str(example)
            if isinstance(value, bytes)
            else str(value) in str(example)
        )


def test_each_cause_has_a_code() -> None:
    kinds = [type(example) for example in EXAMPLES]
    assert set(kinds) == set(RangeError.__subclasses__())
    assert len({kind.code for kind in kinds}) == len(kinds)
