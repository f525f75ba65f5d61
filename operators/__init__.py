"""The operator library: one operator per file, loaded when it is first used.

The names are in `__init__.pyi`, where a new operator adds a line. Read in this order:

1. `transform`: operators from record to record. `filter` is the simplest of all.
2. `aggregate`, `join`: operators by key.
3. `files`: finding files and cutting them into blocks. `readers`: reading blocks. `contexts`: records within a block.
4. `formats`: rows and columns of files. `compression`: packed files.
5. `sinks`: writing files.
6. `conditions`, `problems`: when handlers apply, and rules between properties. `acero`: Arrow's engine.
"""

from dagflow.exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(__name__)
