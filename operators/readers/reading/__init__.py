"""The loop by which a block reader reads, and the objects that it holds.

Read in this order:

1. `block_loop`: opens the streams of blocks, and passes their records from the finder to the output.
2. `record_finder`: finds the records of a block with the reader context.
3. `record_output`: emits records as lists or batches.
4. `joined_pieces`: the records of several small blocks as one piece.
5. `conversion`: makes values of the bytes of records.
6. `claiming`: claims records where other readers may take over the rest of a block.
7. `reader_time`: counts the time that the reader itself takes.
"""
