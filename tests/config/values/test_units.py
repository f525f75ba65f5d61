"""Sizes and durations in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.config.values.units import (
    GiB,
    KiB,
    MiB,
    TiB,
    format_millis,
    format_seconds,
    format_size,
    parse_millis,
    parse_seconds,
    parse_size,
    parse_whole,
)


@given(st.integers(0, 2**63))
def test_a_size_comes_back_from_its_words(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 10**6), st.sampled_from([10**3, 2**10, 10**6, 2**20, 10**12, 2**50]))
def test_a_round_size_has_short_words_that_come_back(count: int, factor: int) -> None:
    assert len(format_size(count * factor)) <= len(str(count * factor))
    assert parse_size(format_size(count * factor)) == count * factor


@given(st.floats(0, 1e12))
def test_seconds_come_back_from_their_words_to_the_last_bit(seconds: float) -> None:
    assert parse_seconds(format_seconds(seconds)) == seconds


@given(st.integers(-(10**6), 2**63))
def test_milliseconds_come_back_from_their_words(millis: int) -> None:
    assert parse_millis(format_millis(millis)) == millis


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("64MiB", 64 * MiB),
        ("64 mib", 64 * MiB),
        ("1GB", 10**9),
        ("1gb", 10**9),
        ("1GiB", GiB),
        ("2KiB", 2 * KiB),
        ("10 TB", 10 * 10**12),
        ("3TiB", 3 * TiB),
        ("1.5KiB", 1536),
        ("0.001kB", 1),
        ("12 bytes", 12),
        ("7B", 7),
        ("1_000_000", 10**6),
        ("-1", -1),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("64M", "`M` is not a unit: write MB (a power of 1000) or MiB (a power of 1024)"),
        ("64k", "`k` is not a unit: write KB (a power of 1000) or KiB (a power of 1024)"),
        ("64 parsecs", "`parsecs` is not a unit of size"),
        ("0.3KiB", "it is not an integer number of bytes"),
        ("1.5", "it is not a number with a unit"),
        ("MiB", "it is not a number with a unit"),
        ("-1MiB", "it is not a number with a unit"),
        ("1MiB 2KiB", "it is not a number with a unit"),
        ("", "it is not a number with a unit"),
    ],
)
def test_what_is_no_size(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("2s", 2.0),
        ("5 min", 300.0),
        ("5m", 300.0),
        ("1h 30min", 5400.0),
        ("1h30min", 5400.0),
        ("2 hours", 7200.0),
        ("1 day", 86400.0),
        ("0.1s", 0.1),
        ("100us", 0.0001),
        ("3", 3.0),
        ("0.25", 0.25),
        ("1e3", 1000.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("5M", "`M` is not a unit of time"),
        ("5 fortnights", "`fortnights` is not a unit of time"),
        ("5 S", "`S` is not a unit of time"),
        ("soon", "it is not a number with a unit"),
        ("1s!", "it is not a number with a unit"),
        ("", "it is not a number with a unit"),
        ("nan", "it is not finite"),
        ("inf", "it is not finite"),
        ("9" * 400 + "s", "it is too long"),
    ],
)
def test_what_is_no_duration(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        parse_seconds(text)


def test_milliseconds_are_whole() -> None:
    assert parse_millis("1.5s") == 1500
    with pytest.raises(ValueError, match="integer number of milliseconds"):
        parse_millis("1.5ms")


@pytest.mark.parametrize("text", ["8.7", "", "8 ", "eight", "_8", "8_", "0x10"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="not an integer"):
        parse_whole(text)
