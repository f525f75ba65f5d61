"""The in-process runner: every task in the calling thread, without a JVM."""
