"""Imports what the module of the same name in `off` imports, so that both launches start alike."""

import dagflow.runtime.live.task
import dagflow.runtime.live.watch  # noqa: F401  # as in `off`
