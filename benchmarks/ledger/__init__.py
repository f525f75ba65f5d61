"""The ledger beside Delta Lake's log: the figures of `docs/benchmarks.md`, by `python -m benchmarks.ledger`."""
