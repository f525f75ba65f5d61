"""The window loop on the driver: plan, start tasks, decide, roll forward."""
