"""The scan framework: managed readers, schema negotiators, result set loader, projection."""
