"""Parts of the binary formats.

Read in this order:

1. `arrow_file`: a stream from which pyarrow reads Parquet.
2. `int96`: the older timestamps of Parquet.
3. `avro_schema`: the schemas of Avro as types of Arrow.
4. `counting`: rows without columns.
"""
