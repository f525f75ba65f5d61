"""Operators at which records leave the DAG."""
