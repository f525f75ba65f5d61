"""Benchmarks: peers and ourselves in turn in one go."""
