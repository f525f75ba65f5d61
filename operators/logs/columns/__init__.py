"""Messages as typed columns: `values` loads the values of messages, `scan_reader` is the base of the readers."""
