"""Datasets as text and JSON, for `dagflow log`, `show`, `trace` and `verify`.

Read `rows` (the rows of a dataset), then `ledger` (its entries), `trace` and `verify`.
"""
