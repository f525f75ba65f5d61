"""The description of a field, read from where its author wrote it."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import textwrap
import tokenize

import attrs

_NOT_DOCS = ("noqa", "type:", "pyright:", "pragma", "fmt:", "ruff:", "pylint:")


def field_docs(cls: type) -> dict[str, str]:
    """Return the docs of an attrs class's fields by key, of base classes too.

    Taken from `metadata["doc"]`, else from a string below the field, else from the comment behind it. Fields without docs, and
    classes whose source is not at hand, are left out.
    """
    docs_in_source: dict[str, str] = {}
    for klass in reversed(cls.__mro__):
        if klass is not object and attrs.has(klass):
            docs_in_source.update(_docs_in_source(klass))
    docs = {}
    for field in attrs.fields(cls):
        doc = field.metadata.get("doc") or docs_in_source.get(field.name)
        if doc:
            docs[field.alias or field.name] = " ".join(str(doc).split())
    return docs


@functools.cache
def _docs_in_source(cls: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
        body = ast.parse(source).body[0]
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments = {t.start[0]: t.string.lstrip("#: ").strip() for t in tokens if t.type == tokenize.COMMENT}
    except (OSError, TypeError, SyntaxError, IndexError, tokenize.TokenError):
        return {}
    if not isinstance(body, ast.ClassDef):
        return {}
    docs = {}
    for statement, after in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        comment = comments.get(statement.end_lineno or 0, "")
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            docs[statement.target.id] = inspect.cleandoc(after.value.value)
        elif comment and not comment.startswith(_NOT_DOCS):
            docs[statement.target.id] = comment
    return docs
