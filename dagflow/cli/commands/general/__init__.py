"""Commands that need neither an application nor a dataset."""
