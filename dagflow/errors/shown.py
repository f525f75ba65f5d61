"""Texts that may be shown or stored: without secrets in URLs, and on terminals without control characters."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs

HIDDEN = "***"

_SOUNDS = (
    r"secret|passw|passphrase|\bpwd\b|token(?!i[sz])|credential|(?:api|access|private|account)[._-]?key|authorization|webhook"
    r"|bearer|(?<![^\W_])pat(?![^\W_])"
)
_NAMED = (
    r"(?:api|access|private|account|secret)[._-]?key|(?:access|auth|bearer)[._-]?token|client[._-]?secret|passphrase|signature"
    r"|(?<![^\W_])pat(?![^\W_])"
)
_SECRET = re.compile(_SOUNDS, re.IGNORECASE)
# what is in a dict under the name of a secret, as headers of HTTP and options of drivers are
_KEY = re.compile(
    rf"(?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]*(?:token|key)|password|passwd|pwd|pat|(?:[\w.-]*[._-])?(?:{_NAMED})",
    re.IGNORECASE,
)
# user:password@ of a URL; the password may hold an @, and anything but a slash
_USER = re.compile(r"([a-z][a-z0-9+.-]*://[^\s/:@'\"]*):[^\s/'\"]+@", re.IGNORECASE)
# token@ of a web address
_TOKEN = re.compile(r"(https?://)[^\s/:@?#'\"]+@", re.IGNORECASE)
# the path of a web hook: to know it is to be allowed to post
_HOOK = re.compile(
    r"(https?://(?:hooks?\.|[\w.-]*webhook)[\w.:-]*/|https?://[^\s'\"<>]*?/(?:webhook\w*|api/hooks|services/hooks)/"
    r"|https?://[^\s/'\"<>]+/bot)(?!\*\*\*)[^\s'\"<>)?#]+",
    re.IGNORECASE,
)
_QUOTED = r"'(?:[^'\\]|\\.)+'|\"(?:[^\"\\]|\\.)+\""
# ?api_key=…&sig=… of a URL
_QUERY = re.compile(
    rf"([?&;#](?:[\w.-]*(?:{_SOUNDS}|signature)[\w.-]*|sig|key|auth)=)(?!['\"]?\*\*\*)(?:{_QUOTED}|[^&;#\s'\"]+)", re.IGNORECASE
)
# password=… of a connection string, and api_key=… of a message; with a colon, only in quotes
_SETTING = re.compile(
    rf"((?:^|[\s'\"(,{{&;])(?:password|passwd|pwd|sig|[\w.-]*(?:{_NAMED}))['\"]?\s?(?:=\s?|:\s?(?=['\"])))"
    rf"(?!['\"]?\*\*\*)({_QUOTED}|[^&;\s'\"]+)",
    re.IGNORECASE,
)
# Authorization: Bearer … of HTTP, in any notation
_HEADER = re.compile(
    r"((?:authorization|(?:set-)?cookie)['\"]?\s*[:=]\s*['\"]?"
    r"(?:(?:bearer|basic|digest|token|apikey|negotiate|aws4-hmac-sha256)\s+)?+)"
    r"(?!\*\*\*)[^\s'\"]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer\s+)(?=\S*\d|\S{20})[\w.~+/=-]{8,}", re.IGNORECASE)
# keys that tell what they are: of AWS (with the secret key behind it), GitHub, GitLab, Slack, OpenAI, Databricks, Google; and JWT
_KNOWN = re.compile(
    r"\b(?:(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?:[\s:,;/'\"|]{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?"
    r"|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|sk-[\w-]{20,}|dapi[0-9a-f]{32}|AIza[\w-]{35}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
# without one of these, a text has no secret: most have none
_HINT = re.compile(r"[=:]|A[KSRI][IOD]A|AIza|gh[a-z]_|github_pat|glpat|xox|sk-|dapi|eyJ|bearer", re.IGNORECASE)
# C0, C1, line and paragraph separators, and what turns the direction of writing
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

Value = TypeVar("Value")


def sounds_secret(key: str) -> bool:
    """Return True for a name that sounds like that of a secret.

    >>> [sounds_secret(key) for key in ("api_key", "fs.s3a.access.key", "password", "tokenizer", "partition_key")]
    [True, True, True, False, False]
    """
    return _SECRET.search(key) is not None


def without_secrets(value: Value) -> Value:
    """Return a text, or data with texts in it, where what gives access is `***`: passwords, tokens, keys, addresses of web hooks.

    They are known by where they stand (in URLs, headers, connection strings, behind the name of a secret) or by their form.

    >>> without_secrets("sftp://ada:pw@host/logs and https://host/a?day=1&api_key=k&sig=s")
    'sftp://ada:***@host/logs and https://host/a?day=1&api_key=***&sig=***'
    >>> without_secrets({"paths": ["s3://bucket/logs", "ftp://u:p@host/"]})
    {'paths': ['s3://bucket/logs', 'ftp://u:***@host/']}
    >>> without_secrets({"text": "Authorization: Bearer abc", "url": "https://hooks.slack.com/services/T1/B2/c3"})
    {'text': 'Authorization: Bearer ***', 'url': 'https://hooks.slack.com/***'}
    """
    return _mapped(value, _masked)


def visible(value: Value) -> Value:
    r"""Return a text, or data with texts in it, for a terminal: without secrets, and with control characters escaped.

    >>> visible(("a\x1b[2J.txt", "two\nlines", "größe"))
    ('a\\x1b[2J.txt', 'two\\nlines', 'größe')
    """
    return _mapped(value, lambda text: _CONTROL.sub(_escaped, _masked(text)))


def escaped(text: str) -> str:
    r"""Return a text with its control characters escaped, and nothing else changed: for data of users, which is not masked.

    >>> escaped("a\tb?token=c")
    'a\\tb?token=c'
    """
    return _CONTROL.sub(_escaped, text)


def visible_lines(text: str) -> str:
    r"""Return a text of several lines for a terminal: line ends and tabs stay.

    >>> visible_lines("first\n\x07second")
    'first\n\\x07second'
    """
    return _CONTROL_IN_LINES.sub(_escaped, _masked(text))


def _masked(text: str) -> str:
    if _HINT.search(text) is None:
        return text
    if "://" in text:
        text = _TOKEN.sub(rf"\1{HIDDEN}@", _USER.sub(rf"\1:{HIDDEN}@", text))
        text = _HOOK.sub(rf"\1{HIDDEN}", text)
    text = _HEADER.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", _KNOWN.sub(HIDDEN, text))
    return _SETTING.sub(_setting, _QUERY.sub(rf"\1{HIDDEN}", text)) if "=" in text or ":" in text else text


def _setting(found: re.Match[str]) -> str:
    """Return a setting without its value, which keeps its quotes."""
    quote = found[2][0] if found[2][0] in "'\"" else ""
    return f"{found[1]}{quote}{HIDDEN}{quote}"


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _mapped_under(key: object, value: Value, change: Callable[[str], str]) -> Value:
    """Return a value of a dict, changed; `***` for a text under the name of a secret."""
    if type(value) is str and value and isinstance(key, str) and _KEY.fullmatch(key):
        return cast("Value", HIDDEN)
    return _mapped(value, change)


def _mapped(value: Value, change: Callable[[str], str]) -> Value:
    """Return data of the same form with every text changed. Exceptions and other objects stay as they are."""
    shown: Any = value
    if isinstance(shown, str):
        return cast("Value", change(shown)) if type(shown) is str else value
    if isinstance(shown, Mapping):
        return cast("Value", {_mapped(key, change): _mapped_under(key, each, change) for key, each in shown.items()})
    if type(shown) in (list, tuple, set, frozenset):
        return cast("Value", type(shown)(_mapped(each, change) for each in shown))
    if attrs.has(type(shown)) and not isinstance(shown, type | BaseException):
        fields = [(a.name, getattr(shown, a.name)) for a in attrs.fields(type(shown))]
        changed = {name: new for name, old in fields if (new := _mapped(old, change)) is not old and new != old}
        if changed:
            shown = copy.copy(shown)
            for name, new in changed.items():
                object.__setattr__(shown, name, new)
        return cast("Value", shown)
    return value
