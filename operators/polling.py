"""PollingInput: the base of inputs that look for what is new."""

from __future__ import annotations

import attrs

from dagflow import InputOperator, OperatorContext
from dagflow.config import Millis, millis_of, not_negative


@attrs.define(slots=False)
class PollingInput(InputOperator):
    """Looks for what is new: at once, and in a continuous run again after each interval.

    Args:
        scan_interval_millis: the time from one look to the next, in milliseconds; continuous runs only.
    """

    scan_interval_millis: Millis = attrs.field(default=1000, kw_only=True, converter=millis_of, validator=not_negative)

    def setup(self, context: OperatorContext) -> None:
        """Begin without a warning."""
        self._context = context
        self._warned: set[str] = set()

    def is_time(self, looked: float | None) -> bool:
        """Return True if it is time to look. `looked`: when that was done last, by the monotonic clock; None: not yet."""
        if looked is None:
            return True
        waited = self._context.clock.monotonic() - looked
        return self._context.continuous and waited >= self.scan_interval_millis / 1000

    def warn_once(self, about: str, text: str) -> None:
        """Warn, unless there was a warning about it in this launch."""
        if about not in self._warned:
            self._warned.add(about)
            self._context.warn(text)
