"""Windows of event time."""
