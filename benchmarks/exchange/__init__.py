"""Word counts, over an exchange: the figures of `docs/benchmarks.md`, by `python -m benchmarks.exchange`."""
