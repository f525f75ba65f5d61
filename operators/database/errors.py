"""Errors of databases that are away, or refuse what they are asked for."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import InfrastructureError, error


@error(kw_only=True)
class DatabaseBusy(InfrastructureError):
    """A database does not answer, has lost the connection, or another session is in the way. The step is retried.

    If the connection was lost after COMMIT was sent, the next attempt reads whether the window is in. `database`: its place;
    `doing`: the purpose; `reason`: the message of the database.
    """

    code: ClassVar[str] = "DF435"
    example = {"database": "localhost:5432/shop", "doing": "publishing window 3 to 'sales'", "reason": "connection refused"}
    general_remedy = "launch again when the database answers; the run resumes"
    is_transient: ClassVar[bool] = True

    database: str
    doing: str
    reason: str

    def message(self) -> str:
        return f"{self.database}: the database is not available ({self.reason}), while {self.doing}"


@error(kw_only=True)
class DatabaseRefused(InfrastructureError):
    """A database refuses the connection or a statement, for lack of permission or space for example.

    `database`: its place; `doing`: the purpose; `reason`: the message of the database; `needs`: the permissions that it takes.
    """

    code: ClassVar[str] = "DF438"
    example = {
        "database": "localhost:5432/shop",
        "doing": "staging rows",
        "reason": "permission denied for schema public",
        "needs": "USAGE and CREATE on the schema of the table",
    }
    general_remedy = "fix what the database reports, then launch again: the run resumes"

    database: str
    doing: str
    reason: str
    needs: str = ""

    def message(self) -> str:
        return (
            f"{self.database} refuses the connection or a statement, while {self.doing}: {self.reason}\n"
            "  help: fix what the database reports, then launch again: the run resumes"
            + (f"\n        The user needs {self.needs}" if self.needs else "")
        )
