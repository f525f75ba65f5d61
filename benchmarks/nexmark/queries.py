"""Queries of Nexmark by operators, and as the SQL that DuckDB and Spark run.

They ask what Apache Flink's suite asks; in Apache Beam's, a bid must also reach the reserve. Of q0 to q13, three are left out:

- q10 copies all bids to files by their time, which is a sink and not a query.
- q11 counts bids in session windows, which no operator has yet.
- q12 counts bids by the time at which they are processed. Results depend on the input alone here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from benchmarks.nexmark.data import TABLES
from benchmarks.suite import Query, Suite, Tables, joined
from operators import Deduplicate, Distinct, Filter, GroupBy, Select, TopN, agg, col, window


def bids_in_time(table: Tables) -> Any:
    """Return the bids that came while their auction was open, with some columns of it."""
    auctions = table("auction").to(Select("id", "category", "seller", "expires", opened="date_time"))
    in_time = col("date_time").between(col("opened"), col("expires"))
    return joined(table("bid").to(Select("auction", "bidder", "price", "date_time")), auctions, {"auction": "id"}, where=in_time)


def final_prices(table: Tables) -> Any:
    """Return the highest price that was bid in time for each auction."""
    return bids_in_time(table).to(GroupBy("auction", "category", "seller", "expires", final=agg.max("price")))


def q0(table: Tables) -> Any:
    """All bids as they are."""
    return table("bid").to(Select("auction", "bidder", "price", "date_time", "extra"))


def q1(table: Tables) -> Any:
    """All bids, with their prices in euros."""
    return table("bid").to(Select("auction", "bidder", "date_time", "extra", price=Decimal("0.908") * col("price")))


def q2(table: Tables) -> Any:
    """Bids for auctions with certain numbers."""
    return table("bid").to(Filter(col("auction") % 123 == 0)).to(Select("auction", "price"))


def q3(table: Tables) -> Any:
    """Who sells in three states, in a category."""
    auctions = table("auction").to(Filter(col("category") == 10)).to(Select("id", "seller"))
    persons = table("person").to(Filter(col("state").isin(["OR", "ID", "CA"]))).to(Select("id", "name", "city", "state"))
    return joined(auctions, persons, {"seller": "id"}).to(Select("name", "city", "state", "id"))


def q4(table: Tables) -> Any:
    """The average of the final prices of auctions, by category."""
    return final_prices(table).to(GroupBy("category", price=agg.mean("final")))


def q5(table: Tables) -> Any:
    """The auctions with most bids in ten seconds, every two seconds."""
    counts = table("bid").to(GroupBy(window("date_time", "10s", slide="2s"), "auction", num=agg.count()))
    most = counts.to(GroupBy("window_start", most=agg.max("num")))
    return joined(counts, most, "window_start", where=col("num") >= col("most")).to(Select("auction", "num"))


def q6(table: Tables) -> Any:
    """The average of the final prices of a seller's last ten auctions.

    Published is the average at each auction that closes. The last of them is what stands when all have closed.
    """
    last = final_prices(table).to(TopN(10, "expires", by="seller"))
    return last.to(GroupBy("seller", price=agg.mean("final")))


def q7(table: Tables) -> Any:
    """The highest bids in each ten seconds.

    Published with both ends: a bid at the end of a window is compared with the highest price of that window, too.
    """
    bids = table("bid")
    highest = bids.to(GroupBy(window("date_time", "10s"), highest=agg.max("price")))
    then = col("date_time").between(col("window_start"), col("window_end"))
    found = joined(bids, highest, {"price": "highest"}, where=then)
    return found.to(Select("auction", "price", "bidder", "date_time", "extra"))


def q8(table: Tables) -> Any:
    """Who registered and opened an auction within the same ten seconds."""
    persons = table("person").to(Distinct("id", "name", window("date_time", "10s")))
    sellers = table("auction").to(Distinct("seller", window("date_time", "10s")))
    same = {"id": "seller", "window_start": "window_start", "window_end": "window_end"}
    return joined(persons, sellers, same).to(Select("id", "name", start="window_start"))


def q9(table: Tables) -> Any:
    """The winning bid of each auction: the highest, the earliest of equal ones."""
    earliest = bids_in_time(table).to(Deduplicate(by=("auction", "price"), order_by="date_time"))
    highest = earliest.to(TopN(1, "price", by="auction"))
    return highest.to(Select("auction", "category", "seller", "expires", "bidder", "price", "date_time"))


def q13(table: Tables) -> Any:
    """Bids with a text of a table that does not change."""
    bids = table("bid").to(Select("auction", "bidder", "price", "date_time", key=col("auction") % 10_000))
    return joined(bids, table("side_input"), "key").to(Select("auction", "bidder", "price", "date_time", "value"))


SLICE = "date_trunc('minute', date_time) + interval '{0}' second * cast(floor(extract(second from date_time) / {0}) as int)"
"""The start of the time window that a row is in, as SQL that all peers understand: for seconds that divide a minute."""
TEN = SLICE.format(10)

IN_TIME = """select auction, category, seller, expires, bidder, price, bid.date_time from auction, bid
    where auction = id and bid.date_time between auction.date_time and expires"""
FINAL_PRICES = f"""select auction, category, seller, expires, max(price) as final from ({IN_TIME}) as in_time
    group by auction, category, seller, expires"""

COUNTS = f"""select auction, start, count(*) as num from (
    select auction, {SLICE.format(2)} - interval '2' second * back as start
    from bid cross join (values (0), (1), (2), (3), (4)) as hops(back)) as hopped group by auction, start"""

QUERIES = {
    "q0": Query(q0, "select auction, bidder, price, date_time, extra from bid"),
    "q1": Query(q1, "select auction, bidder, 0.908 * price as price, date_time, extra from bid"),
    "q2": Query(q2, "select auction, price from bid where auction % 123 = 0"),
    "q3": Query(
        q3,
        """select name, city, state, auction.id from auction, person
        where seller = person.id and category = 10 and state in ('OR', 'ID', 'CA')""",
    ),
    "q4": Query(q4, f"select category, avg(final) as price from ({FINAL_PRICES}) as finals group by category"),
    "q5": Query(
        q5,
        f"""with counts as ({COUNTS})
        select auction, num from counts, (select start as its, max(num) as most from counts group by start) as highest
        where start = its and num >= most""",
    ),
    "q6": Query(
        q6,
        f"""select seller, avg(final) as price from (
        select *, row_number() over (partition by seller order by expires desc, auction) as place
        from ({FINAL_PRICES}) as finals) as ranked
        where place <= 10 group by seller""",
    ),
    "q7": Query(
        q7,
        f"""select auction, price, bidder, date_time, extra from bid, (
        select start, max(price) as highest from (select price, {TEN} as start from bid) as placed group by start) as periods
        where price = highest and date_time between start and start + interval '10' second""",
    ),
    "q8": Query(
        q8,
        f"""select id, name, persons.start from (select distinct id, name, {TEN} as start from person) as persons,
        (select distinct seller, {TEN} as start from auction) as sellers
        where id = seller and persons.start = sellers.start""",
    ),
    "q9": Query(
        q9,
        f"""select auction, category, seller, expires, bidder, price, date_time from (
        select *, row_number() over (partition by auction order by price desc, date_time, bidder) as place
        from ({IN_TIME}) as in_time) as ranked
        where place = 1""",
    ),
    "q13": Query(q13, "select auction, bidder, price, date_time, value from bid, side_input where auction % 10000 = key"),
}
"""The queries by name. Where rows are ranked, those that are equal are ordered by the remaining columns by name, as here."""

NEXMARK = Suite("nexmark", TABLES, QUERIES)
