"""Commands on applications."""
