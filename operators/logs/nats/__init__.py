"""Streams of NATS JetStream as message logs.

Read in this order:

1. `connection`: JetStream's API for synchronous callers.
2. `streams`: streams as partitions, and ranges of sequences as streams of messages.
3. `operators`: the input operator, the reader, and both as one thing.
4. `scan`: messages as typed columns.
"""
