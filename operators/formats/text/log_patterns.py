"""Ready-made patterns for `RegexFormat`: access logs of Apache and nginx, syslog."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

ACCESS_TIME = "%d/%b/%Y:%H:%M:%S %z"

_QUOTED = r'(?:[^"\\]|\\.)*'
_TARGET = r'(?P<target>(?:[^\s"\\]|\\.)+)'
_REQUEST = rf"(?P<request>(?P<method>[A-Za-z]+) {_TARGET}(?: (?P<protocol>[A-Z]+/[0-9.]+))?|{_QUOTED})"
# A line with a virtual host in front, or behind a torn one, has more words than these: the identity is not an address, and no
# word of a user with blanks is `-`. RE2 has no lookahead, so the patterns say what there may be.
_IDENT = r"(?P<ident>[^\s.:]+|[^\s:]*[^\s.:0-9][^\s:]*)"
_WORD = r'(?:[^\s"\[-]|[^\s"\[]{2,})'
_USER = rf"(?P<user>-|{_WORD}(?: +{_WORD})*)"
_MARK = "\ufeff"  # says that a message of RFC 5424 is UTF-8
_COMMON = (
    rf"(?P<host>\S+) {_IDENT} {_USER} \[(?P<time>[^\[\]]+)\] "
    rf'"{_REQUEST}" (?P<status>\d{{3}}|-) (?P<size>\d+|-)'
)
_SYSLOG = (
    r"(?:<(?P<priority>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) "
    r"(?P<host>[^\s\[\]]*[^\s\[\]:]) "  # `su:` and `su[12]:` are programs, of a line without a host
    r"(?:(?P<app>[^\s:\[\]]+)(?:\[(?P<pid>\d+)\])?: ?)?(?P<message>.*)"
)
_SYSLOG_5424 = (
    r"<(?P<priority>\d{1,3})>(?P<version>\d{1,2}) (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<pid>\S+) (?P<message_id>\S+) "
    rf"(?P<data>-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: {_MARK}?(?P<message>.*))?"
)


@attrs.frozen
class LogPattern:
    """A pattern, with the types of its groups.

    Attributes:
        pattern: a regular expression whose named groups are the columns.
        types: the types of columns that are not strings.
        times: the formats of times that are not in ISO 8601.
        null: strings that mean null.
    """

    pattern: str
    types: Mapping[str, str] = attrs.field(factory=dict)
    times: Mapping[str, str] = attrs.field(factory=dict)
    null: tuple[str, ...] = ("",)


_ACCESS_TYPES = {"status": "int16", "size": "int64"}
LOG_PATTERNS: Mapping[str, LogPattern] = {
    "common": LogPattern(_COMMON, _ACCESS_TYPES, {"time": ACCESS_TIME}, ("", "-")),
    "combined": LogPattern(
        rf'{_COMMON} "(?P<referer>{_QUOTED})" "(?P<user_agent>{_QUOTED})"', _ACCESS_TYPES, {"time": ACCESS_TIME}, ("", "-")
    ),
    "syslog": LogPattern(_SYSLOG, {"priority": "int16", "pid": "int64"}),
    "syslog5424": LogPattern(
        _SYSLOG_5424, {"priority": "int16", "version": "int16", "time": "timestamp[us, tz=UTC]"}, {}, ("", "-")
    ),
}
"""`common`: host, ident, user, time, request (method, target, protocol), status, size. `combined`: also referer and user_agent;
the default format of nginx. `syslog` (RFC 3164): priority, time (text: it has no year), host, app, pid, message.
`syslog5424` (RFC 5424): also version, message_id and data."""
