"""Plan views, reports and errors as text, pictures and JSON: pure functions that never read live objects.

Read in this order:

1. `style`, `words` and `values`: colours, tables that fit a width; numbers, sizes and durations; values of records.
2. `plan`, `graph` and `views`: an application and its plan; `peek`: the records that flow through a port; `notebook`: all of
   these in notebooks.
3. `report`: the closing report of a run.
4. `datasets`: datasets, for `dagflow log`, `show`, `trace` and `verify`.
5. `errors` and `explanations`: an error as users read it, and `dagflow explain`; `catalogue`: `dagflow operators`.
"""
