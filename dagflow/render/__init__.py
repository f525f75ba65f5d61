"""Plan views, reports and errors as text, pictures and JSON: pure functions, which walk no live object."""
