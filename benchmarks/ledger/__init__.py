"""The ledger beside Delta Lake's log: the figures of `benchmarks/RESULTS.md`, by `python -m benchmarks.ledger`."""
