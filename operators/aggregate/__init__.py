"""Operators that aggregate records by key, or all records.

Read in this order:

1. `count`: the simplest; `sum`, `min`, `max` and `average` are like it.
2. `aggregate`: the base of these five, with the partial aggregation that runs before the exchange.
3. `fields`: keys and values of records, given by functions or by names of columns.
4. `deduplicate`, `top_n`: keyed operators that keep records; `ranked_rows`: those that stand over all windows, in their order.
5. `tumbling`: windows of event time; `event_time` holds what it needs.
6. `group_by`: rows by any columns, with the aggregates of `agg`; `accumulators`: what it keeps of groups, exact and reversible;
   `kept_groups`: the same over all windows, and which results a window has changed. `current_rows`: all rows that stand.
   `distinct`: the groups alone.
7. `groups`: the groups that aggregates hold, as Python objects and as columns, and the totals that they keep over windows.
"""
