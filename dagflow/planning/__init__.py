"""The planner: pure functions that turn a DAG into stages and levels.

Read in this order:

1. `plan`: the values. A `Plan` is what the runners know of an application; each step fills in what it decides.
   `emission`: when changing streams reach sinks.
2. `steps`: the steps in order, which `dagflow plan --step NAME` prints. This is the planner's table of contents.
3. The steps: `columns_read`, `current_results`, `partial_aggregation`, `relays`, `place`, `forms`, `stages`. (`expand` and
   `check` are in `dagflow.model`.)
   `scopes` says the input that each operator's results cover; `held_changes` and `unique_rows` are operators that
   `current_results` adds.
4. `view`: a plan as plain data, for text and pictures; `spark_lines`: what Spark is given for a window.
5. Used during a run: `assignment` of work items to partitions, and `late_columns`.
"""
