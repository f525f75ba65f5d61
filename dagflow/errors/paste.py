"""Words of a command line, as messages show them: ready to be pasted into a shell."""

from __future__ import annotations


def definition(operator: str, key: str, value: object) -> str:
    """The `-D` that gives a property of an operator, or a part of one, a value.

    >>> definition("reader", "reader_context.max_record_bytes", 256)
    '-D operator.reader.reader_context.max_record_bytes=256'
    >>> definition("all logs", "wait", "true")
    "-D 'operator.all logs.wait=true'"
    """
    import shlex

    return f"-D {shlex.quote(f'operator.{operator}.{key}={value}')}"
