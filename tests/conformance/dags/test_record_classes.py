"""Dataclasses and named tuples are records with columns, as attrs classes are: annotations say them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import duckdb
import pytest

from dagflow import DAG, InputPort, MapState, Operator, OutputPort
from dagflow.errors import PortTypeError
from dagflow.model.types.forms import to_batch, to_records
from dagflow.testing import run_dag
from operators import CsvFormat, Deduplicate, FileSplitterInput, Filter, GroupBy, Map, ParquetWriter, ScanReader, agg


@dataclasses.dataclass
class Sale:
    """A sale."""

    shop: str
    price: int
    note: str | None = None


@dataclasses.dataclass(kw_only=True)
class Labelled(Sale):
    """A sale with labels, of which some are sales again."""

    labels: list[str] = dataclasses.field(default_factory=list)
    of: Sale | None = None


class Visit(NamedTuple):
    """A visit."""

    shop: str
    price: int
    note: str | None = None


@attrs.define
class Plain:
    """The same as an attrs class."""

    shop: str
    price: int
    note: str | None = None


def rows_of(query: str) -> list[Any]:
    with duckdb.connect() as database:
        return database.execute(query).fetchall()


CLASSES = [Sale, Visit, Plain]


@pytest.mark.parametrize("cls", CLASSES)
def test_records_are_rows_and_come_back(cls: Any) -> None:
    records = [cls("a", 1), cls("b", 2, "x")]
    batch = to_batch(records, cls)
    assert batch.to_pylist() == [{"shop": "a", "price": 1, "note": None}, {"shop": "b", "price": 2, "note": "x"}]
    assert to_records(batch, cls) == records
    assert to_batch([], cls).num_rows == 0


def test_keyword_only_fields_and_classes_within() -> None:
    records = [Labelled(shop="a", price=1, labels=["x"], of=Sale("b", 2)), Labelled(shop="a", price=1)]
    assert to_records(to_batch(records, Labelled), Labelled) == records


def test_a_record_of_another_class_is_refused() -> None:
    with pytest.raises(TypeError, match="Labelled is a subclass of Sale"):
        to_batch([Labelled(shop="a", price=1)], Sale)
    with pytest.raises(TypeError, match="field 'price'"):
        to_batch([Visit("a", "1")], Visit)  # type: ignore[arg-type]  # that is the mistake


@dataclasses.dataclass
class Computed:
    """Its constructor does not take the total."""

    price: int
    total: int = dataclasses.field(init=False, default=0)


def test_a_class_that_its_values_do_not_make_has_no_columns() -> None:
    with pytest.raises(TypeError, match="has no Arrow form"):
        to_batch([Computed(1)], Computed)


@dataclasses.dataclass
class Doubled:
    """Its constructor changes what it takes."""

    price: int

    def __post_init__(self) -> None:
        self.price *= 2


@dataclasses.dataclass
class Shifted:
    """Its constructor takes more than the fields."""

    first: int
    more: dataclasses.InitVar[int] = 0
    second: int = 0


@dataclasses.dataclass(init=False)
class Own:
    """Its constructor takes a text."""

    price: int

    def __init__(self, text: str) -> None:
        self.price = int(text)


class Turned(NamedTuple("Turned", [("a", int), ("b", int)])):
    """A named tuple with a constructor of its own."""

    __slots__ = ()

    def __new__(cls, b: int, a: int) -> Turned:
        return super().__new__(cls, a, b)


@dataclasses.dataclass
class Node:
    """It has objects of its own class."""

    price: int
    below: list[Node] = dataclasses.field(default_factory=list)


UNLIKE = [Doubled(2), Shifted(1, 5, 3), Own("7"), Turned(1, 2), Node(1, [Node(2)])]


@pytest.mark.parametrize("record", UNLIKE, ids=lambda record: type(record).__name__)
def test_records_that_columns_would_not_give_back_stay_as_they_are(record: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="has no Arrow form"):
        to_batch([record], type(record))
    (tmp_path / "in.csv").write_text("n\n1\n")
    cls = type(record)

    def make(row: dict[str, Any]) -> Any:
        return record

    def is_same(each: Any) -> bool:
        assert each == record
        return True

    make.__annotations__["return"] = is_same.__annotations__["each"] = cls

    def populate_dag(dag: DAG, conf: Any) -> None:
        kept = dag.read(tmp_path / "in.csv").to(Map(make)).to(Filter(is_same))
        kept.to(Map(lambda each: 1)).to(ParquetWriter[Any](str(tmp_path / "out")))

    run_dag(populate_dag, {}, slots=2)
    assert rows_of(f"SELECT count(*) FROM '{tmp_path}/out/*.parquet'") == [(1,)]


def made(cls: Any) -> Callable[[dict[str, Any]], Any]:
    def make(row: dict[str, Any]) -> Any:
        return cls(row["shop"], row["price"])

    make.__annotations__["return"] = cls
    return make


def is_dear(cls: Any) -> Callable[[Any], bool]:
    def dear(record: Any) -> bool:
        assert type(record) is cls
        return bool(record.price > 1)

    dear.__annotations__["record"] = cls
    return dear


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("cls", CLASSES)
def test_writers_joins_and_aggregates_take_them(cls: Any, slots: int, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("shop,price\nx,1\nx,2\ny,3\ny,3\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        sales = dag.read(tmp_path / "in.csv").to(Map(made(cls)))
        sales.to(GroupBy("shop", price=agg.sum("price"))).to(ParquetWriter[Any](str(tmp_path / "totals")), name="totals")
        dear = sales.to(Filter(is_dear(cls)))
        dear.to(Deduplicate(by="shop", order_by="price")).to(ParquetWriter[Any](str(tmp_path / "dear")), name="dear")

    run_dag(populate_dag, {}, slots=slots)
    assert rows_of(f"SELECT * FROM '{tmp_path}/totals/current/*.parquet' ORDER BY shop") == [("x", 3), ("y", 6)]
    dear = rows_of(f"SELECT shop, price, note FROM '{tmp_path}/dear/current/*.parquet' ORDER BY shop")
    assert dear == [("x", 2, None), ("y", 3, None)]


def test_ports_of_different_classes_are_refused(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(tmp_path / "in.csv", "csv").to(Map(made(Sale))).to(Filter(is_dear(Visit)))

    with pytest.raises(PortTypeError, match="Sale is not Visit"):
        run_dag(populate_dag, {})


@pytest.mark.parametrize("cls", CLASSES)
def test_readers_make_them(cls: Any, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("shop,price,note\nx,1,\ny,2,7\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(tmp_path / "in.csv")))
        reader = dag.add_operator("reader", ScanReader[cls](CsvFormat()))  # type: ignore[valid-type]  # the class is a parameter
        dag.connect(files.blocks_metadata_output, reader)
        reader.batches.to(Filter(is_dear(cls))).to(ParquetWriter[Any](str(tmp_path / "out")))

    run_dag(populate_dag, {})
    assert rows_of(f"SELECT shop, price, note FROM '{tmp_path}/out/*.parquet'") == [("y", 2, "7")]


@attrs.define
class Seen(Operator):
    """Counts the sales of a shop."""

    input = InputPort[Sale](partition_by="shop")
    output = OutputPort[Visit]()
    counts = MapState[str, int]()

    @input.process
    def count(self, sale: Sale) -> None:
        """Count it."""
        self.counts[sale.shop] = self.counts.get(sale.shop, 0) + 1
        self.output.emit(Visit(sale.shop, self.counts[sale.shop]))


def test_operators_of_users_take_and_emit_them(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("shop,price\nx,1\nx,2\ny,3\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(tmp_path / "in.csv").to(Map(made(Sale))).to(Seen())
        rows.to(ParquetWriter[Any](str(tmp_path / "out")))

    run_dag(populate_dag, {}, slots=2)
    result = rows_of(f"SELECT shop, max(price) FROM '{tmp_path}/out/*.parquet' GROUP BY shop ORDER BY shop")
    assert result == [("x", 2), ("y", 1)]


def test_a_reader_of_a_class_without_columns_reads_rows(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("price\n1\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(tmp_path / "in.csv")))
        reader = dag.add_operator("reader", ScanReader[Doubled](CsvFormat()))
        dag.connect(files.blocks_metadata_output, reader)
        reader.batches.to(ParquetWriter[Any](str(tmp_path / "out")))

    run_dag(populate_dag, {})
    assert rows_of(f"SELECT price FROM '{tmp_path}/out/*.parquet'") == [(1,)]
