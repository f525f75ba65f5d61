"""One stage in one task: its program as data that travels, and its operators at work.

Read in this order:

1. `program` and `parts`: what a task gets: operators, work items, and parts of items. `by_value`: how they are pickled.
2. `outcome`: what the driver gets back.
3. `conversion`, `outlet`, `node` and `inlet`: rows as records, the output ports of an operator at work, the operator itself,
   and its input ports. `task_time`: the time that each of them takes.
4. `failure` and `blame`: from an exception to an error that names operator, record and line. `errors`: these errors.
5. `unchanged`: the check that operators do not change records (`enforce_immutability`).
"""
