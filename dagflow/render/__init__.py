"""Plan views, reports and errors as text, pictures and JSON: pure functions that never read live objects.

Read in this order:

1. `style` and `words`: colours, tables that fit a width; numbers, sizes and durations.
2. `plan`, `graph` and `views`: an application and its plan.
3. `report`: the closing report of a run.
4. `ledger`, `trace` and `verify`: datasets, for `dagflow log`, `trace` and `verify`.
5. `errors` and `explanations`: an error as users read it, and `dagflow explain`.
"""
