"""Queries of TPC-H by operators, and as the SQL that DuckDB and Spark run."""

from __future__ import annotations

import datetime
from typing import Any

from benchmarks.suite import Query, Suite, Tables, joined
from benchmarks.tpch.data import TABLES
from operators import Filter, GroupBy, Select, Sort, agg, col, lit, when

REVENUE = col("l_extendedprice") * (1 - col("l_discount"))


def day(text: str) -> Any:
    """Return a date as a literal."""
    return lit(datetime.date.fromisoformat(text))


def q1(table: Tables) -> Any:
    """Prices and discounts of what was shipped, by its state."""
    lines = table("lineitem").to(Filter(col("l_shipdate") <= day("1998-09-02")))
    paid = lines.to(Select("*", disc_price=REVENUE, charge=REVENUE * (1 + col("l_tax"))))
    return paid.to(
        GroupBy(
            "l_returnflag",
            "l_linestatus",
            sum_qty=agg.sum("l_quantity"),
            sum_base_price=agg.sum("l_extendedprice"),
            sum_disc_price=agg.sum("disc_price"),
            sum_charge=agg.sum("charge"),
            avg_qty=agg.mean("l_quantity"),
            avg_price=agg.mean("l_extendedprice"),
            avg_disc=agg.mean("l_discount"),
            count_order=agg.count(),
        )
    )


def q3(table: Tables) -> Any:
    """The ten orders that are not shipped and bring most."""
    buyers = table("customer").to(Filter(col("c_mktsegment") == "BUILDING"))
    orders = table("orders").to(Filter(col("o_orderdate") < day("1995-03-15")))
    lines = table("lineitem").to(Filter(col("l_shipdate") > day("1995-03-15"))).to(Select("l_orderkey", revenue=REVENUE))
    wanted = joined(orders, buyers, {"o_custkey": "c_custkey"}, "semi")
    found = joined(lines, wanted, {"l_orderkey": "o_orderkey"})
    sums = found.to(GroupBy("l_orderkey", "o_orderdate", "o_shippriority", revenue=agg.sum("revenue")))
    return sums.to(Sort(limit=10, by=("-revenue", "o_orderdate")))


def q4(table: Tables) -> Any:
    """Orders of a quarter with a line that came late, by priority."""
    days = (col("o_orderdate") >= day("1993-07-01")) & (col("o_orderdate") < day("1993-10-01"))
    late = table("lineitem").to(Filter(col("l_commitdate") < col("l_receiptdate")))
    orders = joined(table("orders").to(Filter(days)), late, {"o_orderkey": "l_orderkey"}, "semi")
    return orders.to(GroupBy("o_orderpriority", order_count=agg.count()))


def q5(table: Tables) -> Any:
    """Sales of suppliers of Asia to customers of their own country in a year."""
    days = (col("o_orderdate") >= day("1994-01-01")) & (col("o_orderdate") < day("1995-01-01"))
    asia = table("region").to(Filter(col("r_name") == "ASIA"))
    nations = joined(table("nation"), asia, {"n_regionkey": "r_regionkey"}, "semi")
    suppliers = joined(table("supplier"), nations, {"s_nationkey": "n_nationkey"})
    orders = joined(table("orders").to(Filter(days)), table("customer"), {"o_custkey": "c_custkey"})
    lines = table("lineitem").to(Select("l_orderkey", "l_suppkey", revenue=REVENUE))
    sold = joined(lines, orders, {"l_orderkey": "o_orderkey"})
    local = joined(sold, suppliers, {"l_suppkey": "s_suppkey", "c_nationkey": "s_nationkey"})
    return local.to(GroupBy("n_name", revenue=agg.sum("revenue")))


def q6(table: Tables) -> Any:
    """The loss of a year by small discounts."""
    days = (col("l_shipdate") >= day("1994-01-01")) & (col("l_shipdate") < day("1995-01-01"))
    small = col("l_discount").between(0.05, 0.07) & (col("l_quantity") < 24)
    lines = table("lineitem").to(Filter(days & small))
    return lines.to(Select(paid=col("l_extendedprice") * col("l_discount"))).to(GroupBy(revenue=agg.sum("paid")))


def q10(table: Tables) -> Any:
    """The twenty customers who sent back most in a quarter."""
    days = (col("o_orderdate") >= day("1993-10-01")) & (col("o_orderdate") < day("1994-01-01"))
    lines = table("lineitem").to(Filter(col("l_returnflag") == "R")).to(Select("l_orderkey", revenue=REVENUE))
    orders = table("orders").to(Filter(days)).to(Select("o_orderkey", "o_custkey"))
    returned = joined(lines, orders, {"l_orderkey": "o_orderkey"}).to(GroupBy("o_custkey", revenue=agg.sum("revenue")))
    customers = joined(returned, table("customer"), {"o_custkey": "c_custkey"}).to(Sort(limit=20, by=("-revenue", "o_custkey")))
    return joined(customers, table("nation"), {"c_nationkey": "n_nationkey"}).to(
        Select("c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment", c_custkey=col("o_custkey"))
    )


def q12(table: Tables) -> Any:
    """Lines that came late by mail and ship, by the priority of their order."""
    days = (col("l_receiptdate") >= day("1994-01-01")) & (col("l_receiptdate") < day("1995-01-01"))
    late = (col("l_commitdate") < col("l_receiptdate")) & (col("l_shipdate") < col("l_commitdate"))
    lines = table("lineitem").to(Filter(col("l_shipmode").isin(["MAIL", "SHIP"]) & late & days))
    is_high = col("o_orderpriority").isin(["1-URGENT", "2-HIGH"])
    counted = joined(lines, table("orders"), {"l_orderkey": "o_orderkey"}).to(
        Select("l_shipmode", high=when(is_high).then(1).otherwise(0), low=when(is_high).then(0).otherwise(1))
    )
    return counted.to(GroupBy("l_shipmode", high_line_count=agg.sum("high"), low_line_count=agg.sum("low")))


def q13(table: Tables) -> Any:
    """Customers by the number of their orders."""
    orders = table("orders").to(Filter(~col("o_comment").str.like("%special%requests%"))).to(Select("o_orderkey", "o_custkey"))
    counted = joined(table("customer"), orders, {"c_custkey": "o_custkey"}, "left").to(
        GroupBy("c_custkey", c_count=agg.count("o_orderkey"))
    )
    return counted.to(GroupBy("c_count", custdist=agg.count()))


def q14(table: Tables) -> Any:
    """The share of promoted parts in what a month brought."""
    days = (col("l_shipdate") >= day("1995-09-01")) & (col("l_shipdate") < day("1995-10-01"))
    lines = table("lineitem").to(Filter(days)).to(Select("l_partkey", revenue=REVENUE))
    parts = table("part").to(Select("p_partkey", is_promoted=col("p_type").str.like("PROMO%")))
    sums = joined(lines, parts, {"l_partkey": "p_partkey"}).to(
        Select("revenue", promo=when(col("is_promoted")).then(col("revenue")).otherwise(0))
    )
    return sums.to(GroupBy(promo=agg.sum("promo"), revenue=agg.sum("revenue"))).to(
        Select(promo_revenue=100.0 * col("promo").cast("float64") / col("revenue").cast("float64"))
    )


def q18(table: Tables) -> Any:
    """The hundred largest orders of more than 300 pieces."""
    sums = table("lineitem").to(GroupBy("l_orderkey", quantity=agg.sum("l_quantity"))).to(Filter(col("quantity") > 300))
    orders = joined(table("orders"), sums, {"o_orderkey": "l_orderkey"})
    named = joined(orders, table("customer"), {"o_custkey": "c_custkey"})
    largest = named.to(Sort(limit=100, by=("-o_totalprice", "o_orderdate")))
    return largest.to(Select("c_name", "o_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "quantity"))


def q19(table: Tables) -> Any:
    """The revenue of three kinds of parts that were shipped by air and handed over in person."""
    lines = table("lineitem").to(
        Filter(col("l_shipmode").isin(["AIR", "AIR REG"]) & (col("l_shipinstruct") == "DELIVER IN PERSON"))
    )

    def of(brand: str, sizes: str, quantity: int, size: int) -> Any:
        containers = [f"{sizes} {kind}" for kind in ("BAG" if sizes == "MED" else "CASE", "BOX", "PACK", "PKG")]
        is_part = (col("p_brand") == brand) & col("p_container").isin(containers) & col("p_size").between(1, size)
        return is_part & col("l_quantity").between(quantity, quantity + 10)

    kinds = of("Brand#12", "SM", 1, 5) | of("Brand#23", "MED", 10, 10) | of("Brand#34", "LG", 20, 15)
    found = joined(lines, table("part"), {"l_partkey": "p_partkey"}).to(Filter(kinds))
    return found.to(Select(revenue=REVENUE)).to(GroupBy(revenue=agg.sum("revenue")))


QUERIES = {
    "q1": Query(
        q1,
        """select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
        sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
        avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
        from lineitem where l_shipdate <= date '1998-09-02' group by l_returnflag, l_linestatus""",
    ),
    "q3": Query(
        q3,
        """select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
        from customer, orders, lineitem where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""",
    ),
    "q4": Query(
        q4,
        """select o_orderpriority, count(*) as order_count from orders
        where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-10-01'
        and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority""",
    ),
    "q5": Query(
        q5,
        """select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
        from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
        and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
        and o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01' group by n_name""",
    ),
    "q6": Query(
        q6,
        """select sum(l_extendedprice * l_discount) as revenue from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
        and l_discount between 0.05 and 0.07 and l_quantity < 24""",
    ),
    "q10": Query(
        q10,
        """select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name, c_address, c_phone,
        c_comment from customer, orders, lineitem, nation
        where c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate >= date '1993-10-01' and o_orderdate < date '1994-01-01' and l_returnflag = 'R'
        and c_nationkey = n_nationkey
        group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
        order by revenue desc, c_custkey limit 20""",
    ),
    "q12": Query(
        q12,
        """select l_shipmode,
        sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end) as high_line_count,
        sum(case when o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end) as low_line_count
        from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP')
        and l_commitdate < l_receiptdate and l_shipdate < l_commitdate
        and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01' group by l_shipmode""",
    ),
    "q13": Query(
        q13,
        """select c_count, count(*) as custdist from (
        select c_custkey, count(o_orderkey) as c_count from customer left outer join orders
        on c_custkey = o_custkey and o_comment not like '%special%requests%' group by c_custkey) as counted group by c_count""",
    ),
    "q14": Query(
        q14,
        """select 100.0 * cast(sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end) as double)
        / cast(sum(l_extendedprice * (1 - l_discount)) as double) as promo_revenue
        from lineitem, part where l_partkey = p_partkey
        and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'""",
    ),
    "q18": Query(
        q18,
        """select c_name, o_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
        from customer, orders, lineitem
        where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300)
        and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by c_name, o_custkey, o_orderkey, o_orderdate, o_totalprice
        order by o_totalprice desc, o_orderdate limit 100""",
    ),
    "q19": Query(
        q19,
        """select sum(l_extendedprice * (1 - l_discount)) as revenue from lineitem, part
        where p_partkey = l_partkey and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON' and (
        (p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        and l_quantity between 1 and 11 and p_size between 1 and 5)
        or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        and l_quantity between 10 and 20 and p_size between 1 and 10)
        or (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        and l_quantity between 20 and 30 and p_size between 1 and 15))""",
    ),
}
"""The queries by name. Those with a limit have an order that decides between equal rows; the others have none."""

TPCH = Suite("tpch", TABLES, QUERIES)
