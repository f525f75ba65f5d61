"""One stage in one task: its program as data that travels, and its operators at work.

Read `program` (what a task is given) and `outcome` (what the driver gets back), then `node` and `delivery` (an operator with
its inlets and outlets), then what happens to records that fail: `failure`, `bad_row`, `mistyped`, `unchanged`.
"""
