"""Topics of Kafka as message logs, by confluent-kafka.

Read in this order:

1. `settings`: what all clients of a cluster are told, and which of their errors can pass.
2. `client`: the topics, partitions and offsets of a cluster.
3. `stream`: the messages of a partition, from librdkafka into Arrow.
4. `operators`: the input operator, the reader, and both as one thing.
5. `scan`: messages as typed columns.
"""
