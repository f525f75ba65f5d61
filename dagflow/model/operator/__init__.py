"""The contract of an operator: an attrs class with ports, handlers and a lifecycle.

Read in this order:

1. `base`: `Operator` and `InputOperator`. `component` is the part of it that modules share.
2. `ports`: the typed ends of operators, and the decorators that declare handlers.
3. `context`: the object that an operator gets in `setup`.
4. `protocols`: methods that only some operators have, `stream_columns`: what one of them returns; `sink` and `dataframes`: two
   such kinds of operators.
5. `state`, `map_state` and `table_state`: declarations of state.
6. Helpers: `validators` of properties; `call_sites`, the user's lines for messages.
"""
