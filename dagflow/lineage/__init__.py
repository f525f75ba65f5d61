"""Past windows, rebuilt from their records: trace, replay and verify."""
