"""Delimited text (CSV, TSV): its dialects, where records begin, and columns out of pieces of whole records."""
