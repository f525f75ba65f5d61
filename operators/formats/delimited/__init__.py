"""Delimited text (CSV, TSV).

Read in this order:

1. `dialect`: delimiter, quote, escape, comment and encoding.
2. `reader`: the reader of blocks, which calls all others.
3. `beginning`: the beginning of a file, with lines to skip and the header.
4. `context`, `lexer`: pieces of whole records of a block, and the search for the ends of records.
5. `transcoded`: files in encodings such as UTF-16, as UTF-8.
6. `rows`, `text`, `columns`, `codes`: the columns of a piece: all at once, and row by row where a row is odd.
7. `fields`: the fields of a single record, and the names of columns.
8. `sample`: the names and types of columns, inferred from the beginning of a file.
9. `errors`: the errors of a file as a whole. Bad rows are reported as rows.
"""
