"""Subjects of messages, made of the columns of a row."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import string
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from operators.sinks.errors import ValueNotWritable
from operators.sinks.logs.messages import MessageEncoder, Part, value_of

_WRONG = r"^$|[\s*>\x00-\x1f]|^\.|\.$|\.\."
_HELP = "a subject is words with dots between them, without blanks, * and >: change it, or leave such rows out: on_error='skip'"


def placeholders(template: str) -> list[str]:
    """Return the columns that a subject is made of.

    >>> placeholders("orders.{country}.{kind}")
    ['country', 'kind']
    """
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


@attrs.frozen(kw_only=True)
class SubjectEncoder(MessageEncoder):
    """Makes messages with subjects and headers of text. `subject`: a text with columns in braces, or a function of a record."""

    @property
    def parts(self) -> dict[str, Part]:
        """See `MessageEncoder.parts`: each column of the subject is a part."""
        parts = {name: part for name, part in super().parts.items() if name != "subject"}
        if isinstance(self.subject, str):
            return {**parts, **{f"subject {{{name}}}": name for name in placeholders(self.subject)}}
        return {**parts, "subject": self.subject}

    def subjects(self, batch: pa.RecordBatch) -> Any:
        """Return the subject of each row. Raises ValueNotWritable."""
        pieces: list[Any] = []
        for text, name, _, _ in string.Formatter().parse(str(self.subject)):
            pieces.append(text)
            if name:
                column = self.text(name, self.column(batch, name))
                self._check(name, column)
                pieces.append(column)
        if len(pieces) == 1:
            return pa.repeat(pa.scalar(pieces[0]), batch.num_rows)
        return pc.binary_join_element_wise(*pieces, "")

    def subject_of(self, record: Any) -> str:
        """Return the subject of a record. Raises ValueNotWritable."""
        if callable(self.subject):
            subject = self.subject(record)
            self._check("subject", pa.array([subject], pa.string()))
            return str(subject)
        values = {}
        for name in placeholders(str(self.subject)):
            column = self.text(name, pa.array([value_of(record, name)]))
            self._check(name, column)
            values[name] = column[0].as_py()
        return str(self.subject).format_map(values)

    def check_header(self, name: str, column: Any) -> None:
        """Raise ValueNotWritable for headers that are not text of one line: NATS has no others."""
        for value in column.to_pylist():
            try:
                text = (value or b"").decode()
            except UnicodeDecodeError:
                text = "\n"
            if any(character in text for character in "\r\n\0") or text != text.strip():
                help_ = "headers of NATS are lines of text, without blanks at their ends"
                raise ValueNotWritable(operator=self.operator, column=name, value=f"{value!r:.40}", format="NATS", help=help_)

    def _check(self, name: str, column: Any) -> None:
        wrong = pc.match_substring_regex(column, _WRONG).fill_null(True)
        if pc.any(wrong, min_count=0).as_py():
            value = repr(column.filter(wrong)[0].as_py())
            raise ValueNotWritable(operator=self.operator, column=name, value=value, format="a subject", help=_HELP)
