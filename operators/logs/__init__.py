"""Message logs: partitions of messages with offsets, read as blocks.

Read in this order:

1. `protocol`: what an adapter to a log offers: its partitions, and streams of messages.
2. `blocks`: ranges of offsets as work items.
3. `messages`: messages as records and columns.
4. `splitter_input`: the base of the input operators, which plan ranges on the driver.
5. `block_reader`: the base of the readers, which read ranges in tasks.
6. `memory`: a log in memory, for tests, and the shortest adapter.
7. `avro_messages`: a decoder of messages whose schemas a registry has.
8. `kafka`: topics of Kafka.
9. `nats`: streams of NATS JetStream.
10. `errors`: logs that are away, topics that are missing, messages that are lost.
"""
