"""Errors of expressions and of functions of records."""

from __future__ import annotations

from dagflow.errors import RunError, error


@error("DF332", kw_only=True, is_fatal=True)
class ExpressionRefused(RunError, ValueError):
    """An expression does not fit the batches that arrive.

    `columns`: the names and types of the columns that arrived; `where`: the place of the part that does not fit, may be empty,
    as `help`, the remedy.
    """

    operator: str
    expression: str
    reason: str
    columns: tuple[tuple[str, str], ...]
    where: str = ""
    help: str = ""
    template = (
        "{operator}: {reason}\n"
        "  expression  {expression}\n"
        "  columns     {columns_and_types:?{columns_and_types}|none}"
        "{where:?\n  where       {where}}"
        "{help:?\n  help: {help}}"
    )
    example = {
        "operator": "filter",
        "expression": '(contry == "DE")',
        "reason": "there is no column 'contry'",
        "columns": (("country", "string"),),
        "where": "app.py:12:25",
        "help": 'write pc.field("country")',
    }

    @property
    def columns_and_types(self) -> list[str]:
        """The columns as a message has them: `price (int64)`."""
        return [f"{name} ({kind})" for name, kind in self.columns]


@error("DF845", kw_only=True)
class ExpressionFailed(RunError, ArithmeticError):
    """An expression has no value for a row: a number is too large for its type, or a text is not a value of another type.

    `part`: the smallest part of the expression that fails; `values`: those of its columns, in the row; `where`: its place.
    """

    operator: str
    expression: str
    part: str
    reason: str
    values: tuple[tuple[str, str], ...] = ()
    where: str = ""
    template = (
        "{operator}: {reason}\n"
        "  expression  {expression}"
        "{smaller_part:?\n  part        {smaller_part}}"
        "{named_values:?\n  values      {named_values}}"
        "{where:?\n  where       {where}}"
    )
    example = {
        "operator": "filter",
        "expression": "col('price') * col('count') > 100",
        "part": "col('price') * col('count')",
        "reason": "overflow",
        "values": (("price", "9223372036854775807"), ("count", "2")),
        "where": "app.py:12:25",
    }
    general_remedy = (
        "compute in a wider type: .cast('decimal(38, 2)') or .cast('float64'); leave such rows out: when(…).then(…).otherwise(None); "
        "or let them be skipped: on_error='skip'"
    )

    @property
    def smaller_part(self) -> str:
        """The part, if it is not the whole expression."""
        return "" if self.part == self.expression else self.part

    @property
    def named_values(self) -> list[str]:
        """The values as a message has them: `price = 3`."""
        return [f"{name} = {value}" for name, value in self.values]


@error("DF920", kw_only=True, is_fatal=True)
class UnionColumnsDiffer(RunError, TypeError):
    """A column of one input of a `Union` does not fit those of another.

    Attributes:
        port, type: the input, and the type of the column there; None: it does not have the column.
        other, other_type: the same of an input that has the column, in an earlier or a later row where it is the same input.
    """

    port: str
    column: str
    type: str | None
    other: str
    other_type: str | None
    example = {"port": "input_1", "column": "price", "type": "string", "other": "input_0", "other_type": "int64"}

    def message(self) -> str:
        there = f"{self.other} has it" + ("" if self.other_type is None else f" as {self.other_type}")
        if self.type is None:
            port = f"a row of {self.port}" if self.port == self.other else self.port
            there = "another one has it" if self.port == self.other else there
            return (
                f"Union: {port} has no column {self.column!r}, and {there}\n"
                "  help: select the same columns before: Select(…); or fill them with nulls: Union(…, allow_missing_columns=True)"
            )
        return (
            f"Union: column {self.column!r} of {self.port} is {self.type}, and {there}: no type holds the values of both\n"
            f"  help: convert one of them before: Select('*', {self.column}=col({self.column!r}).cast({self.other_type!r}))"
        )


@error("DF940", kw_only=True)
class UnionValueNotHeld(RunError, ValueError):
    """A value of a `Union` is not held by the type that its column has for all inputs: a bad row.

    Attributes:
        type: the type of the column where the value is.
        joint_type: the type of the column for all inputs.
        value: the value as text; None if it is not known.
    """

    column: str
    type: str
    joint_type: str
    value: str | None = None
    template = (
        "Union: column {column!r} has {value:?the {type} {value}|a value ({type})}, and is {joint_type} for all inputs, "
        "which does not hold it\n"
        "  help: convert the others before: Select('*', {column}=col({column!r}).cast({type!r})); or leave such\n"
        "        rows out: Union(…, on_error='skip')"
    )
    example = {"column": "price", "type": "int64", "joint_type": "double", "value": "9007199254740993"}


@error("DF921", kw_only=True, is_fatal=True)
class NotAList(RunError, TypeError):
    """`Unnest` got a column whose values are not lists."""

    column: str
    type: str
    template = (
        "Unnest: the values of column {column!r} are {type}, not lists\n"
        "  help: make lists of them: a Map whose function returns dict(row, {column}=[…]); or name another column"
    )
    example = {"column": "items", "type": "string"}


@error("DF950", kw_only=True)
class RowNotAsDeclared(RunError, TypeError):
    """The function of a `Map` or `FlatMap` returned a row without the columns that `columns=`, or a TypedDict, declares.

    `function`: its name, with file and line; `row`: what it returned.
    """

    function: str
    row: str
    reason: str
    template = (
        "{function} returned a row that is not as declared: {reason}\n"
        "  row     {row}\n"
        "  help: return all columns that are declared, and no others, with values of their types, or None; or declare others: "
        'columns="n: int64, name: string"'
    )
    example = {"function": "parse() (app.py:12)", "row": "{'n': 'x'}", "reason": "n='x' is not of the type int64"}


@error("DF384", kw_only=True)
class NotSeveral(RunError, TypeError):
    """The function of a `FlatMap` returned a string, or a value that is not iterable."""

    function: str
    got: str
    template = (
        "the function of a FlatMap must return several records, but {function} returned {got}\n"
        "  help: return a list, which may be empty, or yield; use Map where every record becomes exactly one"
    )
    example = {"function": "split()", "got": "the str 'a b'"}
