import datetime
from pathlib import Path

from app import Price, PricedSale, Sale, Settings, populate_dag

from dagflow.ledger import read_dataset
from dagflow.testing import check_cuts, run_dag, run_operator

DAY = datetime.date(2026, 11, 20)


def test_an_amount_is_pieces_times_price() -> None:
    records = run_operator(Price(), {"input": [Sale(DAY, "tea", 3, 1.1)]})
    assert records["output"] == [PricedSale(DAY, "tea", 3, 1.1, 3.3)]


def test_the_application(tmp_path: Path) -> None:
    sales = tmp_path / "sales.csv"
    sales.write_text("day,item,pieces,price\n2026-11-20,tea,2,1.5\n")
    run_dag(populate_dag, Settings(input=[str(sales)], output=str(tmp_path / "out")))
    rows = read_dataset(str(tmp_path / "out")).to_table().to_pylist()
    assert rows == [{"day": DAY, "item": "tea", "pieces": 2, "price": 1.5, "amount": 3.0}]


def test_results_do_not_depend_on_how_the_input_is_cut() -> None:
    files = {
        "in/a.csv": "day,item,pieces,price\n2026-11-20,tea,2,1.5\n",
        "in/b.csv": "day,item,pieces,price\n2026-11-21,tea,1,1.5\n",
    }
    check_cuts(populate_dag, {"input": ["{home}/in"], "output": "{home}/out"}, files, cuts=3)
