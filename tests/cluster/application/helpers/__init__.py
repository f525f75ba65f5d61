"""A package folder beside the application."""
