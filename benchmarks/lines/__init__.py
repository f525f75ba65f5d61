"""Lines and slices of files: the figures of `docs/benchmarks.md`, by `python -m benchmarks.lines`."""
