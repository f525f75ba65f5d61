"""Operators that aggregate records by key, or all records.

Read in this order:

1. `group_by`: rows by any columns, with the aggregates of `agg`. `accumulators`: what is kept of groups, exact and reversible;
   `ordered_rows`: rows as bytes, for the first and the last one; `window_groups`: the groups of a window; `kept_groups`: those
   of all windows, and which results a window has changed. `distinct`: the groups alone.
2. `count`: the simplest form for records; `sum`, `min`, `max` and `average` are like it. `aggregate`: their base, with
   the partial aggregation that runs before the exchange. `record_groups`: keys and values that are Python objects; `kept_keys`:
   such keys as they are kept.
3. `fields`: keys and values of records, given by functions or by names of columns.
4. `deduplicate`, `top_n`: keyed operators that keep records; `ranked_rows`: those that stand over all windows, in their order;
   `sort`: all rows in an order.
   `current_rows`: all rows that stand. `result_changes`: how many came and left.
5. `tumbling`: windows of event time, as groups with a start; `event_time` holds what it needs.
"""
