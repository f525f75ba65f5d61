"""What all tests share: as little as possible. Fixtures of a room stand in that room's own conftest."""

from __future__ import annotations

import os

from hypothesis import settings

# Coverage looks at the tests' own processes; those that they start would only be slowed down.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_START", None)

# No deadline: machines that run tests are shared, and a slow moment is no error.
settings.register_profile("dagflow", deadline=None, print_blob=True)
settings.load_profile("dagflow")
