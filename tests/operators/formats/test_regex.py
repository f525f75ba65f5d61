from __future__ import annotations

import datetime
import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.errors import BadRowFound
from dagflow.scan import Column
from dagflow.testing import assert_reader_is_splittable, run_operator, scan_reader_of, scan_table
from dagflow.testing.files import blocks_of
from operators import RegexFormat, ScanReader
from operators.formats.regex import is_known_to_arrow, matches, matches_by_python
from operators.formats.text.log_patterns import ACCESS_TIME
from operators.formats.text.times import times_of
from tests.tiers import examples

COMMON = '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326'
COMBINED = f'{COMMON} "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"'
AT = datetime.datetime(2000, 10, 10, 20, 55, 36, tzinfo=datetime.UTC)
reusing_folders = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


def read(
    path: Path, text: str | bytes, kind: RegexFormat, block_size: int | None = None, **properties: Any
) -> list[dict[str, Any]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rows: list[dict[str, Any]] = scan_table(ScanReader(kind, **properties), path, block_size=block_size).to_pylist()
    return rows


def routed(path: Path, text: str | bytes, kind: RegexFormat, **properties: Any) -> tuple[list[Any], list[Any]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    reader = ScanReader(kind, on_bad_row="route", **properties)
    found = run_operator(reader, {"blocks_metadata_input": blocks_of(str(path))})
    return found["batches"], found.get("errors", [])


WHEN = '[10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1'


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("combined", f'www.example.test:443 192.0.2.7 - - {WHEN} "-" "curl"'),
        ("common", f"www.example.test 192.0.2.7 - - {WHEN}"),
        ("common", f"www.example.test 192.0.2.7 - frank {WHEN}"),
        ("common", f"www.example.test:80 192.0.2.7 ident frank {WHEN}"),
        ("common", f"www.example.test 2001:db8::7 - - {WHEN}"),
        ("common", f"192.0.2.7 - - {WHEN}192.0.2.8 - - {WHEN}"),
        ("common", f"192.0.2.7 - - [10/Oct/2000:13:5192.0.2.8 - - {WHEN}"),
        ("common", f"192.0.2.7 - 192.0.2.8 - - {WHEN}"),
        ("common", f"192.0.2 192.0.2.8 - - {WHEN}"),
        ("common", '192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /"a HTTP/1.1" 200 1'),
        ("syslog", "Oct 11 22:14:15 su: failed for lonvick"),
        ("syslog", "<34>Oct 11 22:14:15 su[123]: failed"),
    ],
)
def test_lines_with_more_or_fewer_parts_than_a_pattern_are_bad_rows(path: Path, pattern: str, line: str) -> None:
    rows, bad = routed(path, f"{line}\n", RegexFormat(pattern))
    assert rows == []
    assert [row.raw for row in bad] == [line]


@pytest.mark.parametrize(
    ("ident", "user"), [("-", "joe doe"), ("-", "-"), ("-", "a-b"), ("john.doe", "j"), ("1000", "x y z"), ("-", "--")]
)
def test_identities_and_users(path: Path, ident: str, user: str) -> None:
    (row,) = read(path, f"2001:db8::1 {ident} {user} {WHEN}\n", RegexFormat("common"))
    assert (row["host"], row["ident"], row["user"]) == ("2001:db8::1", *(None if each == "-" else each for each in (ident, user)))


@pytest.mark.parametrize("size", [None, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("pattern", [r"(?P<a>\w+) (?P<b>\w+)", r"(?P<a>\w+)(?= )(?P<_b> )(?P<b>\w+)"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_a_byte_order_mark_is_not_part_of_the_first_line(path: Path, size: int | None, pattern: str, mark: str) -> None:
    rows = read(path, f"{mark}x y\nz w\n", RegexFormat(pattern), size, columns=["a", "b", "block_offset"])
    assert rows == [{"a": "x", "b": "y", "block_offset": 0}, {"a": "z", "b": "w", "block_offset": 4 + 3 * bool(mark)}]


def test_a_mark_elsewhere_is_text(path: Path) -> None:
    assert read(path, "\ufeff\ufeffa\n\ufeffb\n", RegexFormat("(?P<a>.*)")) == [{"a": "\ufeffa"}, {"a": "\ufeffb"}]


def test_the_mark_before_a_message_of_syslog_is_not_part_of_it(path: Path) -> None:
    line = "<34>1 2003-10-11T22:14:15.003Z m su - ID47 - \ufeffmsg\ufeff"
    assert read(path, line, RegexFormat("syslog5424"))[0]["message"] == "msg\ufeff"


def test_access_logs(path: Path) -> None:
    row = {
        "host": "127.0.0.1",
        "ident": None,
        "user": "frank",
        "time": AT,
        "request": "GET /apache_pb.gif HTTP/1.0",
        "method": "GET",
        "target": "/apache_pb.gif",
        "protocol": "HTTP/1.0",
        "status": 200,
        "size": 2326,
    }
    assert read(path, f"{COMMON}\r\n{COMMON}\n", RegexFormat("common")) == [row, row]
    agent = {"referer": "http://www.example.com/start.html", "user_agent": "Mozilla/4.08 [en] (Win98; I ;Nav)"}
    assert read(path, COMBINED, RegexFormat("combined")) == [{**row, **agent}]


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("-", (None, None, None, None)),
        ("", (None, None, None, None)),
        (r"\x16\x03\x01", (r"\x16\x03\x01", None, None, None)),
        (r"GET /\"quoted\" HTTP/1.1", (r"GET /\"quoted\" HTTP/1.1", "GET", r"/\"quoted\"", "HTTP/1.1")),
        ("GET /old", ("GET /old", "GET", "/old", None)),
        ("GET /with space HTTP/1.1", ("GET /with space HTTP/1.1", None, None, None)),
    ],
)
def test_requests_that_are_odd(path: Path, request_line: str, expected: tuple[Any, ...]) -> None:
    line = f'::1 - user name [10/Oct/2000:13:55:36 +0000] "{request_line}" 400 -'
    (row,) = read(path, line, RegexFormat("common"))
    assert (row["request"], row["method"], row["target"], row["protocol"]) == expected
    assert (row["user"], row["status"], row["size"]) == ("user name", 400, None)


def test_syslog(path: Path) -> None:
    lines = [
        "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
        "Feb  5 17:32:18 10.0.0.99 sshd[4711]: Accepted key: yes",
        "2026-01-31T11:00:00.123+01:00 host kernel: up",
        "Feb  5 17:32:18 host last message repeated 2 times",
    ]
    rows = read(path, "\n".join(lines), RegexFormat("syslog"))
    assert [tuple(row.values()) for row in rows] == [
        (34, "Oct 11 22:14:15", "mymachine", "su", None, "'su root' failed for lonvick on /dev/pts/8"),
        (None, "Feb  5 17:32:18", "10.0.0.99", "sshd", 4711, "Accepted key: yes"),
        (None, "2026-01-31T11:00:00.123+01:00", "host", "kernel", None, "up"),
        (None, "Feb  5 17:32:18", "host", None, None, "last message repeated 2 times"),
    ]


def test_syslog_of_rfc_5424(path: Path) -> None:
    lines = [
        '<165>1 2003-10-11T22:14:15.003Z host.example.com evntslog - ID47 [a@32473 iut="3" b="x\\]y"][c@1] An event',
        "<34>1 2003-10-11T22:14:15+02:00 host su 12 - - 'su root' failed",
        "<0>1 - - - - - -",
    ]
    rows = read(path, "\n".join(lines), RegexFormat("syslog5424"))
    at = datetime.datetime(2003, 10, 11, 22, 14, 15, 3000, tzinfo=datetime.UTC)
    data = '[a@32473 iut="3" b="x\\]y"][c@1]'
    assert [tuple(row.values()) for row in rows] == [
        (165, 1, at, "host.example.com", "evntslog", None, "ID47", data, "An event"),
        (34, 1, at.replace(hour=20, microsecond=0), "host", "su", "12", None, None, "'su root' failed"),
        (0, 1, None, None, None, None, None, None, None),
    ]


def test_lines_that_do_not_match_are_bad_rows(path: Path) -> None:
    kind = RegexFormat(r"(?P<key>\w+)=(?P<value>\d*)", types={"value": "int8"})
    rows, bad = routed(path, "a=1\nnothing\nb=\n\nc=3 \nd=300\n", kind)
    assert rows == [{"key": "a", "value": 1}, {"key": "b", "value": None}]
    assert [(row.position, row.line, row.column, row.raw) for row in bad] == [
        (4, 2, None, "nothing"),
        (15, 4, None, ""),
        (16, 5, None, "c=3 "),
        (21, 6, "value", "d=300"),
    ]
    assert {row.reason for row in bad[:3]} == {"the line does not match the pattern"}
    with pytest.raises(BadRowFound) as caught:
        read(path, "a=1\nnothing\n", kind)
    assert str(path) in str(caught.value)
    assert "nothing" in str(caught.value)
    assert (caught.value.position, caught.value.line) == (4, 2)


def test_bad_text_nul_and_times(path: Path) -> None:
    kind = RegexFormat(r"(?P<at>\S+) (?P<text>.*)", times={"at": "%Y%m%d"})
    rows, bad = routed(path, b"20260131 a\0b\n20260131 \xff\n20260231 c\n\xe9\n20260201 d", kind)
    assert rows == [
        {"at": datetime.datetime(2026, 1, 31), "text": "a\0b"},  # noqa: DTZ001  # it has no zone
        {"at": datetime.datetime(2026, 2, 1), "text": "d"},  # noqa: DTZ001
    ]
    assert [(row.position, row.line, row.column, row.raw) for row in bad] == [
        (13, 2, None, "20260131 \\xff"),
        (35, 4, None, "\\xe9"),
        (24, 3, "at", "20260231 c"),
    ]
    assert bad[0].reason == "byte 9 of the line (0xff) is not utf-8"
    assert bad[2].reason == "'20260231' is not a time as '%Y%m%d' has it"


def test_a_time_that_nobody_asked_for_is_not_looked_at(path: Path) -> None:
    kind = RegexFormat(r"(?P<at>\S+) (?P<text>.*)", times={"at": "%Y%m%d"})
    assert read(path, "x a\n", kind, columns=["text"]) == [{"text": "a"}]


def test_other_encodings_and_packed_files(path: Path) -> None:
    kind = RegexFormat(r"(?P<text>.+)", encoding="cp1252")
    assert read(path, "é€\nü".encode("cp1252"), kind) == [{"text": "é€"}, {"text": "ü"}]
    assert read(path, gzip.compress(b"one\ntwo\n"), RegexFormat("(?P<a>.*)"), 10) == [{"a": "one"}, {"a": "two"}]


def test_an_empty_file(path: Path) -> None:
    assert read(path, b"", RegexFormat("common")) == []


LINES = st.lists(st.text(alphabet="ab1=- \r\té€\x0b", max_size=6), max_size=20)
PATTERNS = [
    r"(?P<a>\w+)=(?P<b>\d*)",
    r"(?P<a>a*)(?P<b>b)?(?P<rest>.*)",
    r"(?P<all>(?P<one>\S)(?P<two>.)?(?:=|-).*)",
    r"(?i)(?P<a>A|B+?)(?P<b>\W*)",
    r"^(?P<a>\D*)$",
    r"(?P<a>.)|(?P<b>..)",
    r"\s?(?P<a>[^\s=]+)\b.*",
]


@given(LINES, st.sampled_from(PATTERNS))
def test_arrow_and_python_find_the_same(lines: list[str], pattern: str) -> None:
    texts = pa.array([line.replace("\x0b", "") for line in lines], pa.string())
    assert is_known_to_arrow(pattern)
    assert matches(texts, pattern).to_pylist() == matches_by_python(texts, pattern).to_pylist()


@pytest.mark.parametrize("pattern", [r"(?P<a>\w)(?P<b>(?P=a))", r"(?P<a>\w+)(?<!b)", r"(x|y)(?P<a>.)"])
def test_what_arrow_does_not_know_is_matched_by_python(path: Path, pattern: str) -> None:
    assert not is_known_to_arrow(pattern)
    lines = ["aa", "ab", "xa", ""]
    expected = [match.groupdict() for line in lines if (match := re.fullmatch(pattern, line))]
    assert read(path, "\n".join(lines), RegexFormat(pattern), on_bad_row="drop") == expected


@reusing_folders
@given(LINES, st.integers(1, 60))
def test_any_cut_gives_the_same(path: Path, lines: list[str], size: int) -> None:
    kind, text = RegexFormat(r"(?P<a>\w*)(?P<rest>.*)"), "\n".join(line.replace("\r", "") for line in lines)
    whole = read(path, text, kind)
    assert read(path, text, kind, size) == whole
    assert len(whole) == len(text.removesuffix("\n").split("\n")) if text else not whole


def test_it_is_splittable_anywhere(path: Path) -> None:
    path.write_text("".join(f"k{n}={str(n) * (n % 2_000)}\n" for n in range(1_200)))
    assert_reader_is_splittable(scan_reader_of(ScanReader(RegexFormat(r"(?P<key>\w+)=(?P<value>\d*)"))), path, effort=0.05)


BOUNDS = [datetime.datetime.fromisoformat(f"{year}-01-01") for year in (1900, 2200)]


@given(st.lists(st.none() | st.datetimes(*BOUNDS)), st.integers(-1439, 1439))
def test_times_of_access_logs(times: list[datetime.datetime | None], minutes: int) -> None:
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    zoned = [None if t is None else t.replace(microsecond=0, tzinfo=zone) for t in times]
    texts = pa.array([None if t is None else t.strftime(ACCESS_TIME) for t in zoned], pa.string())
    found, bad = times_of(texts, ACCESS_TIME)
    assert (found.to_pylist(), bad) == (zoned, None)


@pytest.mark.parametrize(
    "text", ["31/Feb/2000:13:55:36 -0700", "10/Okt/2000:13:55:36 -0700", "10/Oct/2000", "10/Oct/2000:25:55:36 -0700"]
)
def test_times_that_are_none(text: str) -> None:
    good = "10/Oct/2000:13:55:36 -0700"
    found, bad = times_of(pa.array([good, text, None, ""]), ACCESS_TIME)
    assert found.to_pylist() == [AT, None, None, None]
    assert bad is not None
    assert bad.to_pylist() == [False, True, False, False]


@pytest.mark.parametrize(("written", "told"), [("%d.%m.%Y %Z", "%Z, which is not supported"), ("%H:%M:%S %p", "%p without %I")])
def test_formats_of_times_are_those_of_columns(written: str, told: str) -> None:
    with pytest.raises(ValueError, match=f"times, column 'at': format has {told}.*it is '{written}'"):
        RegexFormat("(?P<at>.*)", times={"at": written})


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(?P<a>", r"pattern '\(\?P<a>' is not a regular expression: missing \), unterminated subpattern at position 0"),
        ("a.b", r"pattern 'a.b' has no named groups, \(\?P<name>…\), which would be columns; ready-made are common, combined"),
    ],
)
def test_patterns_that_are_none(pattern: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        RegexFormat(pattern)


def test_types_of_columns_that_are_not_there(path: Path) -> None:
    path.write_text("x")
    with pytest.raises(ValueError, match="a type is given for 'b', but the pattern's groups are a"):
        scan_table(ScanReader(RegexFormat("(?P<a>.)", types={"b": "int8"})), path)


def test_numbers_keep_leading_zeros_only_as_text_and_may_have_decimal_commas(path: Path) -> None:
    kind = RegexFormat(r"(?P<n>\S+) (?P<p>\S+)", types={"n": "int64"})
    schema = {"p": Column("float64", decimal=",", thousands=".")}
    assert read(path, "007 1.234,5\n+8 2\n", kind, schema=schema) == [{"p": 1234.5, "n": 7}, {"p": 2.0, "n": 8}]
