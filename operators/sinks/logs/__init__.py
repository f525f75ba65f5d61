"""Windows in message logs: tasks stage messages as files, and the driver publishes them in order.

Read in this order:

1. `messages`: rows as messages, with the number that chooses the partition (`hashing`), or with their `subjects`.
2. `staging`: the files of a task, and the note that a window has begun.
3. `client`: the protocol of a log. `kafka` and `nats` are two of them.
4. `publishing`: sends what the log does not have yet.
5. `writer`: the base of the operators, which are `kafka_writer` and `nats_writer`.

`errors`: the failures. docs/explanation/logs.md says what readers of a log are promised.
"""
