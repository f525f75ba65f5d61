from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dagflow.errors import BadRowFound
from dagflow.scan import NumberText
from dagflow.testing import scan_table
from operators import CsvFormat, ScanReader
from operators.formats.delimited.sample import inferred_type

US, NS, ZONED = pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1.5", "1e400"], pa.string()),
        (["-1e400"], pa.string()),
        (["1.5", "inf", "-Infinity", "nan"], pa.float64()),
        (["2026-01-01 00:00:00.5"], US),
        (["2026-01-01 00:00:00", "2026-01-01T00:00:00.123456"], US),
        (["2026-01-01 00:00:00.5", "2026-01-01 00:00:00.1234567"], NS),
        (["2026-01-01 00:00:00.123456000"], NS),
        (["9999-12-31 00:00:00", "2026-01-01 00:00:00.5"], US),
        (["0001-01-01 00:00:00.000001"], US),
        (["9999-12-31 00:00:00.1234567"], pa.string()),
        (["9999-12-31T00:00:00.5Z", "2026-01-01T00:00:00+02:00"], ZONED),
        (["2026-01-01T00:00:00.5Z"], ZONED),
        (["9999-12-31T00:00:00.5Z", "2026-01-01T00:00:00.5"], pa.string()),
        (["9999-13-31 00:00:00.5"], pa.string()),
    ],
)
def test_what_is_told_of_texts(texts: list[str], kind: pa.DataType) -> None:
    assert inferred_type(pa.array(texts), NumberText(is_inferred=True)) == kind


@pytest.mark.parametrize(("zone", "kind"), [("", "timestamp[ns]"), ("Z", "timestamp[ns, tz=UTC]")])
def test_a_time_with_more_digits_than_the_sample_had_says_which_type_it_needs(tmp_path: Path, zone: str, kind: str) -> None:
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text(f"t\n2026-01-01 00:00:00.5{zone}\n")
    second.write_text(f"t\n2026-01-01 00:00:00.1234567{zone}\n")
    with pytest.raises(BadRowFound) as caught:
        scan_table(ScanReader(CsvFormat(), sample_files=1), [first, second])
    assert f"give the column a type that is wide enough: -D 'operator.reader.schema=t: {kind}'" in str(caught.value)
    assert scan_table(ScanReader(CsvFormat(), schema=f"t: {kind}"), [first, second]).num_rows == 2
    given = scan_table(ScanReader(CsvFormat(), schema="t: timestamp[us]", on_bad_row="drop"), first).to_pylist()
    assert len(given) == (not zone)


def test_a_number_in_the_sample_that_no_float_holds_is_kept_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1.5\n1e400\n")
    assert scan_table(ScanReader(CsvFormat()), tmp_path / "a.csv").to_pylist() == [{"n": "1.5"}, {"n": "1e400"}]


@pytest.mark.parametrize("row", ['"x', '1,"x\n2,3,4\n', '1,2,"x\n', '"","x,2\n'])
def test_a_first_row_whose_quote_is_never_closed_is_a_bad_row(tmp_path: Path, row: str) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n" + row)
    with pytest.raises(BadRowFound, match="is never closed"):
        scan_table(ScanReader(CsvFormat()), tmp_path / "a.csv")
    table = scan_table(ScanReader(CsvFormat(), on_bad_row="drop"), tmp_path / "a.csv")
    assert (table.num_rows, table.column_names) == (0, ["a", "b", "c"])
