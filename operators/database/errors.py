"""Errors of databases that are away, or refuse what they are asked for."""

from __future__ import annotations

from dagflow.errors import InfrastructureError, error


@error("DF435", kw_only=True, is_transient=True)
class DatabaseBusy(InfrastructureError):
    """A database does not answer, has lost the connection, or another session is in the way. The step is retried.

    If the connection was lost after COMMIT was sent, the next attempt reads whether the window is in. `database`: its place;
    `doing`: the purpose; `reason`: the message of the database.
    """

    database: str
    doing: str
    reason: str
    template = "{database}: the database is not available ({reason}), while {doing}"
    example = {"database": "localhost:5432/shop", "doing": "publishing window 3 to 'sales'", "reason": "connection refused"}
    general_remedy = "launch again when the database answers; the run resumes"


@error("DF438", kw_only=True)
class DatabaseRefused(InfrastructureError):
    """A database refuses the connection or a statement, for lack of permission or space for example.

    `database`: its place; `doing`: the purpose; `reason`: the message of the database; `needs`: the permissions that it takes.
    """

    database: str
    doing: str
    reason: str
    needs: str = ""
    template = (
        "{database} refuses the connection or a statement, while {doing}: {reason}\n"
        "  help: fix what the database reports, then launch again: the run resumes"
        "{needs:?\n        The user needs {needs}}"
    )
    example = {
        "database": "localhost:5432/shop",
        "doing": "staging rows",
        "reason": "permission denied for schema public",
        "needs": "USAGE and CREATE on the schema of the table",
    }
