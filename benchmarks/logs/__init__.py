"""Messages of a Kafka broker: throughput to files beside a bare consumer and quixstreams, and the latency of windows."""
