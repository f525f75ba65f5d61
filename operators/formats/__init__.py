"""File formats for ScanReader: one format a file. Their base is `dagflow.scan.Format`."""
