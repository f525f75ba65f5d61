"""Databases, for sinks that write to them and sources that read them.

Read `postgres` first: connections to a server, and the meaning of its errors. Then `postgres_types`: the types of its columns as
Arrow has them, in both directions.
"""
