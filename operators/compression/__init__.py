"""Compressed text: recognised by its content, decompressed as a stream, or by members where it can be cut (BGZF).

The names are in `__init__.pyi`. Read in this order:

1. `context`: any reader context over files that may be compressed. It calls all others.
2. `formats`: the formats and their codecs, recognised by the first bytes of a file.
3. `stream`: a compressed file as a stream of its content.
4. `bgzf`, `pieces`: gzip in members that are read by range, and the records in them.
5. `compressors`: the other direction, for writers.
6. `errors`: the errors of compressed files.
"""

from dagflow.exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(__name__)
