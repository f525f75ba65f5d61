"""Errors of running operators: frozen fields, state, and records of the wrong type."""

from __future__ import annotations

from dagflow.errors import RunError
from dagflow.errors.base import error


@error("DF302", is_fatal=True)
class FieldFrozen(RunError, AttributeError):
    """An operator assigns a field while it runs. The value would be lost."""

    operator: str
    field: str
    template = (
        "{operator} assigns {field!r} while it runs: an operator's fields are frozen after setup(), since an instance lives\n"
        "  for one task of one window and what it assigns would be lost\n"
        "  help: declare it at class level, `{field} = WindowState(0)` for a value within the window\n"
        "        or `{field} = State(0)` for one that is kept over windows"
    )
    example = {"operator": "Mine", "field": "count"}


@error("DF783", is_fatal=True)
class RetractionUndeclared(RunError, TypeError):
    """An operator takes back rows on a stream to which rows are only added, as far as the DAG knows."""

    port: str
    operator: str
    template = (
        "{operator!r} takes back rows of its port {port!r}, and has not declared that it does: the operators behind it\n"
        "  would not follow\n"
        "  help: declare emits_changes = True in its class"
    )
    example = {"port": "output", "operator": "totals"}


@error("DF303")
class StateDeclaration(RunError, TypeError):
    """The declaration of a `State` or `WindowState` is invalid."""

    declaration: str
    reason: str
    template = "{declaration}: {reason}"
    example = {"declaration": "State('total') of class Mine", "reason": "its default is a list, which all instances would share"}
    general_remedy = "declare it as the message says; docs/reference/operators.md shows all forms"


@error("DF304")
class WrongRecordType(RunError, TypeError):
    """An operator emitted or received a record that is not of the type of its port.

    `frames`: the lines of user code that emitted it, where they are known.
    """

    port: str
    expected: str
    got: str
    record: str
    doing: str = "was emitted"
    window: int | None = None
    frames: str = ""
    template = (
        "{port} carries {expected}, but {got} {doing}: {record}"
        "{frames:?\n{frames}}"
        "{window:?\n  window  {window}}"
        "{batch_port:?\n  help: emit a batch with self.{batch_port}.emit_batch(batch); emit() takes one record}"
    )
    example = {"port": "parse.output", "expected": "int", "got": "str", "record": "'7'"}
    general_remedy = "emit records of the type of the port, or declare the port with the type that is emitted"

    @property
    def batch_port(self) -> str:
        """The port within its operator, if `emit()` got a batch."""
        return self.port.rpartition(".")[2] if self.got in ("RecordBatch", "Table") and self.doing == "was emitted" else ""


@error("DF305")
class StateNotPlain(RunError, TypeError):
    """A `State` or a work item holds a value that is not plain data."""

    where: str
    got: str
    template = (
        "{where} holds {got}, which cannot be saved\n"
        "  help: keep None, bool, int, float, str, bytes, and lists, tuples, dicts with string keys, and attrs classes of these"
    )
    example = {"where": "State 'seen' of operator 'parse'", "got": "a socket"}


@error("DF786", kw_only=True, is_fatal=True)
class NeverInserted(RunError, ValueError):
    """More rows are taken back than have come. `group`: values of the first; `sources`: the ports that may take back rows."""

    group: str
    rows: int
    sources: tuple[str, ...] = ()
    template = (
        "{sources:?{sources: or }|an operator before} takes back {rows:=1?a row|{rows:,} rows} that it has not emitted: {group}\n"
        "  help: take each row back once, with exactly the values that it was emitted with; dagflow peek shows the rows of a\n"
        "        port. With on_error='skip', such rows are counted (never_inserted), and change nothing"
    )
    example = {"group": "shop='north'", "rows": 1, "sources": ("orders.output",)}
