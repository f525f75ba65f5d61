"""Message logs: partitions of messages with offsets, read as blocks.

Read in this order:

1. `protocol`: what an adapter to a log offers: its partitions, and streams of messages.
2. `blocks`: ranges of offsets as work items.
3. `messages`: messages as records and columns.
4. `event_times`: the times of messages, for watermarks. `splitter_input`: the base of the input operators, which plan ranges.
5. `access`: reading a range, and messages that are lost. `block_reader`: the base of the readers of messages.
6. `columns`: messages as typed columns.
7. `log_input`: the modules that have both.
8. `memory`: a log in memory, for tests, and the shortest adapter.
9. `avro_messages`: a decoder of messages whose schemas a registry has.
10. `kafka`: topics of Kafka. `nats`: streams of NATS JetStream.
11. `errors`: logs that are away, topics that are missing, messages that are lost.
"""
