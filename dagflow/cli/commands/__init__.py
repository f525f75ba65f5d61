"""The commands, one module each; `dagflow.cli.group.SECTIONS` lists them.

1. `applications`: commands that take APP.
2. `datasets`: commands that take DATASET.
3. `general`: commands that take neither.
"""
