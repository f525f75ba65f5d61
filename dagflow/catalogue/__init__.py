"""The catalogue of operators, made from their classes and docstrings.

Read `docstrings` (the parts of a docstring), then `entries` (the catalogue), and `conf_schema` (what the
configuration files of an application may set).
"""
