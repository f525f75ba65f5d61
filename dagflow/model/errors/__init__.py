"""Errors of the model: of a DAG, of classes, of partitioning, and of operators that run."""
