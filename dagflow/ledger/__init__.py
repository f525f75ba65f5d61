"""Entries, their rules, and the hash-chained ledger of a dataset."""
