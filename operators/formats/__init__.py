"""File formats for ScanReader, one per file. Their base is `dagflow.scan.Format`.

Read in this order:

1. `fixed_width`: the shortest format, on the base that formats of lines share (`text.lines`).
2. `regex`, `json_lines`, `csv`: the other formats of text. The machinery of CSV stands in `delimited`.
3. `avro`, `parquet`: the binary formats.
4. `predicates`, `comparands`: conditions on columns, by which formats with statistics skip rows and files.
5. `options`: validators of the options of formats.
6. `native`: the compiled parsers of `dagflow-native`, where it is installed.
7. `named`: formats by name.
8. `errors`: the errors of binary formats.

The packages behind them: `text`, `delimited` and `binary`.
"""
