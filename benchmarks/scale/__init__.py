"""The driver at sizes that no test has: tasks answer at once, and an object store in this process counts its requests."""
