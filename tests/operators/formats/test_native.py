"""The compiled parsers take what is plain, in the same result as the others, and leave the rest to them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dagflow.testing import scan_table
from operators import CsvFormat, JsonLinesFormat, ScanReader
from operators.formats import native
from operators.formats.delimited.columns import ColumnParser
from operators.formats.text.json_rows import BadLine, JsonRows

pytest.importorskip("dagflow_native", reason="the compiled parsers are not installed: pip install ./native")

TYPES: dict[str, pa.DataType] = {
    "i": pa.int64(),
    "small": pa.int8(),
    "u": pa.uint16(),
    "f": pa.float64(),
    "b": pa.bool_(),
    "s": pa.string(),
    "l": pa.list_(pa.float64()),
    "r": pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
}
blanks = st.sampled_from(["", "", "", " ", "\t", " \r "])
texts = st.text(st.characters(codec="utf-8"), max_size=12)
numbers = st.one_of(
    st.integers(-(2**63) - 1, 2**63).map(str),
    st.integers(-130, 130).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["-0", "0.0", "-0.0", "01", "1.", ".5", "+1", "1e400", "NaN", "Infinity", "9007199254740993", "1e22", "1e23"]
    ),
)


@st.composite
def strings(draw: st.DrawFn) -> str:
    """Draw a JSON string: some characters are escaped, in one way or another."""
    text = draw(texts)
    form = draw(st.sampled_from(["ascii", "plain", "slashes"]))
    encoded = json.dumps(text, ensure_ascii=form == "ascii")
    return encoded.replace("/", "\\/") if form == "slashes" else encoded


values = st.recursive(
    st.one_of(st.sampled_from(["null", "true", "false", "nul", "tru"]), numbers, strings()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]"),
        st.lists(st.tuples(st.sampled_from(['"x"', '"y"', '"z"']), inner), max_size=3).map(
            lambda members: "{" + ", ".join(f"{key}: {value}" for key, value in members) + "}"
        ),
    ),
    max_leaves=6,
)
fitting = {
    "i": st.integers(-(2**63), 2**63 - 1).map(str),
    "small": st.integers(-128, 127).map(str),
    "u": st.integers(0, 65535).map(str),
    "f": numbers,
    "b": st.sampled_from(["true", "false"]),
    "s": strings(),
    "l": st.lists(numbers | st.just("null"), max_size=4).map(lambda items: "[" + ",".join(items) + "]"),
    "r": st.sampled_from(['{"x": 1}', "{}", '{"y": ["a", null], "x": -3}', '{"y": []}', "null"]),
}


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Draw a line: most of its values are of their types, in any order, with members that are not columns beside them."""
    members = []
    for name in draw(st.lists(st.sampled_from([*TYPES, "other", "ä"]), max_size=6)):
        is_fitting = name in fitting and draw(st.integers(0, 9)) > 0
        value = draw(fitting[name] | st.just("null") if is_fitting else values)
        members.append(f'{draw(blanks)}"{name}"{draw(blanks)}:{draw(blanks)}{value}{draw(blanks)}')
    return "{" + ",".join(members) + "}" + draw(blanks)


def slowly(data: bytes, columns: list[str]) -> list[dict[str, Any]] | None:
    """The rows of lines, read one by one; None where one of them is bad or has a value of another type."""
    rows = JsonRows({name: TYPES[name] for name in columns}, columns)
    try:
        batch = rows.batch([rows.row(line) for line in data.split(b"\n") if line.strip()])
    except BadLine:
        return None
    if any(batch.column(name).type != TYPES[name] for name in batch.schema.names):
        return None
    return [{name: row.get(name) for name in columns} for row in batch.to_pylist()]


def same(one: Any, other: Any) -> bool:
    """Compare values and their types: 1 is not 1.0."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


@given(st.lists(lines(), min_size=1, max_size=5), st.lists(st.sampled_from(list(TYPES)), min_size=1, unique=True))
@example(['{"i": 1}', "", '{"i": 2, "i": 3}'], ["i"])
@example(['{"other": 1e400, "i": 1}'], ["i"])
@example(['{"s": "\\ud83d\\ude00\\u00e4\\n"}', '{"s": "\\ud83d"}'], ["s"])
def test_what_the_parser_takes_is_what_the_lines_say(drawn: list[str], columns: list[str]) -> None:
    parse = native.json_parser({name: TYPES[name] for name in columns}, skips_others=True)
    assert parse is not None
    data = "".join(f"{line}\n" for line in drawn).encode()
    batch = parse(memoryview(data))
    if batch is not None:
        batch.validate(full=True)
        expected = slowly(data, columns)
        assert expected is not None, "it took a line that is bad"
        assert same(batch.to_pylist(), [{name: row[name] for name in batch.schema.names} for row in expected])


@given(st.lists(lines(), min_size=1, max_size=3), st.data())
def test_a_damaged_byte_is_never_taken_for_something_else(drawn: list[str], data: st.DataObject) -> None:
    text = bytearray("".join(f"{line}\n" for line in drawn).encode())
    text[data.draw(st.integers(0, len(text) - 2))] = data.draw(st.integers(0, 255))
    parse = native.json_parser(TYPES, skips_others=True)
    assert parse is not None
    batch = parse(memoryview(bytes(text)))
    if batch is not None:
        batch.validate(full=True)
        assert same(batch.to_pylist(), slowly(bytes(text), list(TYPES)))


def test_the_parser_takes_plain_lines() -> None:
    parse = native.json_parser(TYPES, skips_others=True)
    assert parse is not None
    rows = [
        {
            "i": -(2**63),
            "small": -128,
            "u": 65535,
            "f": 0.1,
            "b": True,
            "s": "ä\n😀",
            "l": [1.5, None],
            "r": {"x": 1, "y": ["a"]},
        },
        {"i": 2**63 - 1, "small": 127, "u": 0, "f": 5e-324, "b": False, "s": "", "l": [], "r": {"x": None, "y": None}},
        dict.fromkeys(TYPES),
    ]
    data = "".join(json.dumps({**row, "other": [{"a": 1.5e3}]}) + "\r\n\n" for row in rows).encode()
    batch = parse(memoryview(data))
    assert batch is not None
    assert batch.to_pylist() == rows
    assert batch.schema == pa.schema(list(TYPES.items()))


@pytest.mark.parametrize(
    "line",
    [
        b'{"i": 1.5}',
        b'{"i": 9223372036854775808}',
        b'{"small": 128}',
        b'{"u": -1}',
        b'{"i": 1, "i": 1}',
        b'{"r": {"x": 1, "x": 1}}',
        b'{"r": {"z": 1}}',
        b'{"f": NaN}',
        b'{"f": 1e999}',
        b'{"other": 1e999}',
        b'{"other": [1, 2}',
        b'{"other": "\\ud800"}',
        b'{"other": "\x01"}',
        b'{"s": "\xff"}',
        b'{"\\u0069": 1}',
        b'{"i": 1,}',
        b'{"i" 1}',
        b'{"i": 1} {"i": 1}',
        b'{"i": 1',
        b"[1]",
        b"null",
        b'{"i": 01}',
        b'{"other": ' + b"[" * 100 + b"]" * 100 + b"}",
    ],
)
def test_the_parser_leaves_the_rest_to_others(line: bytes) -> None:
    parse = native.json_parser(TYPES, skips_others=True)
    assert parse is not None
    assert parse(memoryview(line + b"\n")) is None


def test_members_that_are_not_columns_are_left_to_others_where_all_columns_are_wanted() -> None:
    parse = native.json_parser({"i": pa.int64()}, skips_others=False)
    assert parse is not None
    assert parse(memoryview(b'{"i": 1, "other": 2}\n')) is None


@pytest.mark.parametrize(
    "kind", [pa.decimal128(5, 2), pa.float32(), pa.list_(pa.decimal128(5, 2)), pa.map_(pa.string(), pa.int64())]
)
def test_there_is_no_parser_for_other_types(kind: pa.DataType) -> None:
    assert native.json_parser({"a": kind}, skips_others=True) is None


cells = st.one_of(
    st.text(st.sampled_from('ab1 ,;"\r\n\\ä'), max_size=5),
    st.sampled_from(["", '""', '"a"', '"a,b"', '"a\n"', '"a""b"', "\ufeff"]),
)


@given(st.lists(st.lists(cells, min_size=1, max_size=5), max_size=5), st.integers(2, 5), st.data())
@example([["a", "b"], ["", "c"]], 2, None)
@example([["x", "a\r", "y"]], 3, None)
def test_columns_that_are_cut_out_are_those_that_are_parsed(
    rows: list[list[str]], count: int, data: st.DataObject | None
) -> None:
    names = [f"c{n}" for n in range(count)]
    size = 1 if data is None else data.draw(st.integers(1, max(1, count * 3 // 4)))
    wanted = names[:size] if data is None else data.draw(st.permutations(names))[:size]
    text = "".join(",".join(row) + "\n" for row in rows).encode()
    parser = ColumnParser(names, dict.fromkeys(wanted, pa.string()))
    cutter = native.column_cutter(names, wanted, ",", '"')
    if cutter is None or (cut := cutter(pa.py_buffer(text))) is None:
        return
    plain = (
        arrow_csv.read_csv(
            io.BytesIO(text),
            arrow_csv.ReadOptions(column_names=names, use_threads=False),
            arrow_csv.ParseOptions(newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=parser.types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        if text
        else None
    )
    if plain is not None and not text.startswith(b"\xef\xbb\xbf"):
        assert cut[0] == plain.num_rows
        assert parser.parse(pa.py_buffer(text)).to_pylist() == plain.to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        b"1,2\n",
        b"1,2,3,4\n",
        b"1,2,3\n\n",
        b'1,a"b,3\n',
        b'1,"a"b,3\n',
        b'1,"a,3\n',
        b"1,2,3\rx\n",
        b"1,2,3\r\r\n",
        b"1,2,3",
        b"\r\n",
    ],
)
def test_rows_that_are_not_plain_are_not_cut(text: bytes) -> None:
    cut = native.column_cutter(["a", "b", "c"], ["b"], ",", '"')
    assert cut is not None
    assert cut(pa.py_buffer(text)) is None


def test_rows_are_cut() -> None:
    cut = native.column_cutter(["a", "b", "c"], ["c", "a"], ",", '"')
    assert cut is not None
    found = cut(pa.py_buffer(b'1,"x,\n""y""",2\r\n,,\n' + b"long" * 50 + b',b,"c\n"\n'))
    assert found is not None
    assert (found[0], found[1].to_pybytes()) == (3, b"1,2\n,\n" + b"long" * 50 + b',"c\n"\n')


@pytest.mark.parametrize(("delimiter", "quote"), [("ä", '"'), ("\n", '"'), ("\x00", "")])
def test_delimiters_that_are_not_one_plain_byte_are_left_to_others(delimiter: str, quote: str) -> None:
    assert native.column_cutter(["a", "b"], ["b"], delimiter, quote) is None


@pytest.mark.parametrize("columns", [["s"], ["i", "l"], None])
def test_scans_give_the_same_with_and_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str] | None
) -> None:
    path = tmp_path / "a.jsonl"
    good = json.dumps({"i": 1, "s": "x", "l": [1.5], "o": {"a": 1}}) + "\n"
    path.write_text(good * 500 + '{"i": "x", "s": 1, "l": null}\nnot JSON\n' + good * 500)
    reader = ScanReader(JsonLinesFormat(), columns=columns, on_bad_row="drop", drift={"changed": "rescue"})
    compiled = scan_table(reader, path, block_size=9_000)
    monkeypatch.setattr(native, "compiled", None)
    assert compiled.equals(scan_table(reader, path, block_size=9_000))


def test_scans_of_csv_give_the_same_with_and_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,c,d\n" + '1,x,"y, ""z""",2024-01-01\n' * 500 + "1,2\n3,x,oops,\n" * 3 + "2,,,\n" * 500)
    reader = ScanReader(CsvFormat(), columns=["d", "a"], on_bad_row="drop")
    compiled = scan_table(reader, path, block_size=4_000)
    monkeypatch.setattr(native, "compiled", None)
    assert compiled.equals(scan_table(reader, path, block_size=4_000))
