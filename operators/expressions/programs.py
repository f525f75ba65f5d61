"""Expressions compiled for the columns of a batch."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow.errors import suggest
from operators.acero import acero, computed_by
from operators.expressions.columns import Expression
from operators.expressions.rules import CAN_FAIL, RULES, WIDTHS, Misfit, Operand, Widths, literal, together

ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError)
_MAX_PROGRAMS = 256


@attrs.frozen
class CompiledExpression:
    """An expression, compiled for the columns of a schema.

    Attributes:
        expression: the expression as it is written.
        arrow: the expression of `pyarrow.compute`.
        narrow: the same with 38 digits for decimals that may need more, which is quicker; an error for values that do.
        type: its type.
        parts: the parts of both, small ones first.
    """

    expression: Expression
    arrow: Any
    type: pa.DataType
    parts: tuple[tuple[Expression, Any], ...]
    narrow: Any = None

    def failing_part(self, row: pa.RecordBatch) -> Expression:
        """Return the smallest part that cannot be computed for a row."""
        for part, arrow in self.parts:
            try:
                _column(arrow, pa.Table.from_batches([row]))
            except ARROW_ERRORS:
                return part
        return self.expression


class ExpressionMisfit(ValueError):
    """A part of an expression does not fit the columns: the reason, and the remedy."""

    def __init__(self, part: Expression, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.part, self.remedy = part, remedy


_programs: dict[tuple[int, pa.Schema], CompiledExpression] = {}  # each holds its expression, so the id of it is not used again


def program_for(expression: Expression, schema: pa.Schema) -> CompiledExpression:
    """Return an expression compiled for the columns of a schema. Raises ExpressionMisfit where it does not fit them."""
    key = id(expression), schema
    compiled = _programs.get(key)
    if compiled is None:
        compiler = _Compiler(schema)
        token = WIDTHS.set(widths := Widths())
        try:
            operand, narrow = compiler.compiled(expression), None
            if widths.has_wide:
                widths.narrow = True
                with contextlib.suppress(ExpressionMisfit):
                    narrow = _Compiler(schema).compiled(expression).arrow
        finally:
            WIDTHS.reset(token)
        compiled = CompiledExpression(expression, operand.arrow, operand.type, tuple(compiler.parts), narrow)
        if len(_programs) >= _MAX_PROGRAMS:
            _programs.clear()
        _programs[key] = compiled
    return compiled


def narrow_for(expression: Any, schema: pa.Schema) -> Any:
    """Return the narrow form of an expression that is compiled; None if there is none, or it has failed."""
    compiled = _programs.get((id(expression), schema))
    return None if compiled is None else compiled.narrow


def forget_narrow(expression: Any, schema: pa.Schema) -> None:
    """Compute an expression with all digits from now on, since there are values that need them."""
    if (compiled := _programs.get((id(expression), schema))) is not None:
        _programs[id(expression), schema] = attrs.evolve(compiled, narrow=None)


@attrs.define
class _Compiler:
    """Compile expressions for the columns of a schema.

    Attributes:
        guard: the condition under which the values of the branch at hand are needed: there is no value elsewhere, so nothing
            that could fail. None: for all rows.
    """

    schema: pa.Schema
    guard: Any = None
    parts: list[tuple[Expression, Any]] = attrs.field(factory=list)

    def compiled(self, expression: Expression) -> Operand:
        """Return an expression, compiled."""
        if expression.operation == "lit":
            return literal(expression.options[0])
        try:
            operand = self._compiled(expression)
        except Misfit as misfit:
            raise ExpressionMisfit(expression, str(misfit), misfit.remedy) from None
        except ARROW_ERRORS as error:
            raise ExpressionMisfit(expression, str(error).splitlines()[0], "cast the column first: col(…).cast('…')") from None
        self.parts.append((expression, operand.arrow))
        return operand

    def _compiled(self, expression: Expression) -> Operand:
        if expression.operation == "col":
            return self._field(expression.options[0])
        if expression.operation == "when":
            return self._cases(expression.operands)
        arrow = RULES[expression.operation](*map(self.compiled, expression.operands), *expression.options)
        return Operand(arrow, _column(arrow, self.schema.empty_table()).type)

    def _field(self, name: str) -> Operand:
        if name not in self.schema.names:
            near = suggest(name, self.schema.names)
            raise Misfit(f"there is no column {name!r}", f"write col({near!r})" if near else "")
        field, kind = pc.field(name), self.schema.field(name).type
        if t.is_dictionary(kind):
            field, kind = field.cast(kind.value_type), kind.value_type
        if kind in (pa.string_view(), pa.binary_view()):
            plain = pa.string() if kind == pa.string_view() else pa.binary()
            field, kind = field.cast(plain), plain
        if self.guard is not None:
            field = pc.if_else(self.guard, field, pc.scalar(pa.scalar(None, kind)))
        return Operand(field, kind)

    def _cases(self, operands: tuple[Expression, ...]) -> Operand:
        """Compile `when`: each condition and value only counts where no condition before is true."""
        outer, remaining = self.guard, self.guard
        conditions, values = [], []
        try:
            for condition, value in zip(operands[:-1:2], operands[1:-1:2], strict=True):
                holds = self._condition(condition)
                conditions.append(holds)
                self.guard = _both(remaining, holds) if _can_fail(value) else None
                values.append(self.compiled(value))
                remaining = _both(remaining, pc.invert(holds))
                self.guard = remaining
            self.guard = remaining if _can_fail(operands[-1]) else None
            values.append(self.compiled(operands[-1]))
        finally:
            self.guard = outer
        kind = together(values)
        arrow = values[-1].to(kind)
        for holds, given in zip(reversed(conditions), reversed(values[:-1]), strict=True):
            arrow = pc.if_else(holds, given.to(kind), arrow)
        return Operand(arrow, kind)

    def _condition(self, condition: Expression) -> Any:
        if not _can_fail(condition):
            self.guard = None
        operand = self.compiled(condition)
        if not (t.is_boolean(operand.type) or t.is_null(operand.type)):
            raise Misfit(f"the condition {condition!r} gives {operand.type}, but must be true or false")
        return pc.coalesce(operand.to(pa.bool_()), pc.scalar(False))


def _both(one: Any, other: Any) -> Any:
    return other if one is None else pc.and_kleene(one, other)


def _can_fail(expression: Expression) -> bool:
    return any(part.operation in CAN_FAIL for part in expression.parts())


def _column(arrow: Any, table: pa.Table) -> pa.ChunkedArray[Any]:
    return computed_by("project", acero().ProjectNodeOptions([arrow], ["value"]), table).column(0)
