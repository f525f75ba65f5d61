"""Lines and slices of files: the figures of `benchmarks/RESULTS.md`, by `python -m benchmarks.lines`."""
