"""Reader contexts, which find the records in the bytes of a block.

The names are in `__init__.pyi`. Read in this order:

1. `entity`: `ReaderContext`, the class to derive from, and the records that it yields.
2. `fixed_bytes`, `fixed_records`: the simplest contexts.
3. `line`, `read_ahead_line`: the contexts of lines, on their base in `lines`.
4. `piece`: a run of consecutive records, which a context yields at once.
5. `source`: reads of a stream piece by piece.
6. `terminators`, `search`: the ends of records, and the search for a byte.
7. `text`: the encodings of text.
8. `errors`: the errors of bytes.
"""

from dagflow.exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(__name__)
