"""Word counts, over an exchange: the figures of `benchmarks/RESULTS.md`, by `python -m benchmarks.exchange`."""
