"""What all tests share: as little as possible. Fixtures of a room stand in that room's own conftest."""

from __future__ import annotations

from hypothesis import settings

# No deadline: machines that run tests are shared, and a slow moment is no error.
settings.register_profile("dagflow", deadline=None, print_blob=True)
settings.load_profile("dagflow")
