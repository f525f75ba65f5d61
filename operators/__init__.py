"""The operator library: one operator per file, loaded when it is first used.

The names are in `__init__.pyi`, where a new operator adds a line. Read in this order:

1. `transform`: operators from record to record. `filter` is the simplest of all. `expressions`: `col`, `lit`, `when`.
2. `aggregate`, `join`: operators by key.
3. `files`: finding files and cutting them into blocks. `readers`: reading blocks. `contexts`: records within a block.
4. `formats`: rows and columns of files. `compression`: packed files. `sources`: tables of databases. `tables`: those of files.
5. `logs`: topics of message logs.
6. `database`: connections and types of databases. `sinks`: writing files, tables and messages.
7. `polling`: inputs that look for what is new. `conditions`, `problems`: when handlers apply, and rules between properties.
   `acero`: Arrow's engine. `extras`: other packages, loaded where they are used.
"""

from dagflow.exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(__name__)
