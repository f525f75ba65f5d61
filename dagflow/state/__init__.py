"""What operators keep: its declaration, key groups and checkpoints."""
