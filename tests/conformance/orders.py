"""Orders that are corrected and cancelled, for tests of streams whose rows are taken back."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from dagflow import InputPort, MapState, Operator, OutputPort


@attrs.frozen
class Order:
    """The newest state of an order: the customer who has placed it, and its worth. Without a customer, it is cancelled."""

    number: int
    customer: str | None
    worth: float


@attrs.define
class Newest(Operator):
    """Emits the newest state of each order that is not cancelled, and takes back the one before."""

    emits_changes: ClassVar[bool | None] = True

    input = InputPort[Order](partition_by="number")
    output = OutputPort[Order]()
    orders = MapState[int, list[Any]]()

    @input.process
    def take(self, order: Order) -> None:
        if (before := self.orders.pop(order.number, None)) is not None:
            self.output.retract(Order(*before))
        if order.customer is not None:
            self.output.emit(order)
            self.orders[order.number] = [order.number, order.customer, order.worth]


@attrs.define
class Signed(Operator):
    """Emits rows, and takes back those with a negative worth."""

    emits_changes: ClassVar[bool | None] = True

    input = InputPort[Order]()
    output = OutputPort[Order]()

    @input.process
    def each(self, order: Order) -> None:
        row = attrs.evolve(order, worth=abs(order.worth))
        (self.output.emit if order.worth > 0 else self.output.retract)(row)


def doubled(order: Order) -> Order:
    return attrs.evolve(order, worth=2 * order.worth)
