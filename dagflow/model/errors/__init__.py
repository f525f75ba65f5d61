"""Errors of the model: DAGs, classes, partitioning and running operators."""
