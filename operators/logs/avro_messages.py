"""AvroDecoder: messages in Avro, whose schemas a registry has."""

from __future__ import annotations

import base64
import functools
import http.client
import io
import json
import urllib.error
import urllib.request
from typing import Any

import attrs

from dagflow.config import Seconds, Secret, seconds_of
from dagflow.errors import PackageMissing
from operators.logs.errors import LogRefused, LogUnavailable, MessageNotReadable

MAGIC = 0
PREFIX_BYTES = 5
UNKNOWN_SCHEMA = 40403
"""The error code of registries for an id that they do not know. A 404 without it comes from something else at the address."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})

_SCHEMAS: dict[tuple[str, int], Any] = {}
"""Parsed schemas by registry and id, which never change, of this process."""


def _is_url(instance: Any, attribute: Any, value: Any) -> None:
    """Check the address of a registry. Its text may hold a password, so it is not shown."""
    if not isinstance(value, str) or not value.lower().startswith(("http://", "https://")):
        raise ValueError("registry must be a URL that begins with http:// or https://")
    if "@" in value:
        raise ValueError("registry has a login before '@', which messages would show: set user and password instead")


def _is_schema(instance: Any, attribute: Any, value: Any) -> None:
    if value is not None:
        try:
            _parsed(value)
        except PackageMissing:
            raise
        except Exception as error:  # noqa: BLE001  # whatever fastavro raises for a schema that is none
            raise ValueError(f"schema is not a schema of Avro as JSON: {str(error) or type(error).__name__}") from None


@attrs.frozen
class AvroDecoder:
    r"""Converts the value of a message in Avro into a dictionary, by the schema that a registry has.

    It stands where a reader takes a function of bytes: `KafkaInput(…, convert_to_record=AvroDecoder("http://registry:8081"))`.

    The value is in the form of Confluent's serializers: a zero byte, four bytes with the id of the schema, and Avro's binary
    form. The schema is asked for once in a process, by `GET /schemas/ids/ID`. Needs fastavro (`pip install 'dagflow[avro]'`).

    Args:
        registry: the URL of the schema registry, without a login.
        schema: the schema that the application reads by, as JSON; Avro's rules lead from the writer's to it. None: the writer's.
        user, password: for the registry, where it wants a login.
        timeout: seconds for an answer of the registry.

    A value that does not have this form, or whose schema the registry does not know, raises MessageNotReadable, to which
    `on_error` applies. A registry that does not answer raises LogUnavailable, one that refuses, or is none, LogRefused, and
    fastavro that is missing PackageMissing, whatever `on_error` says: no message is skipped for that.
    """

    registry: str = attrs.field(validator=_is_url)
    schema: str | None = attrs.field(default=None, kw_only=True, validator=_is_schema)
    user: str | None = attrs.field(default=None, kw_only=True)
    password: Secret | None = attrs.field(default=None, kw_only=True, repr=False)
    timeout: Seconds = attrs.field(default=10.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))

    def __call__(self, data: bytes) -> Any:
        """Return the record of a message."""
        fastavro = _fastavro()
        if len(data) < PREFIX_BYTES or data[0] != MAGIC:
            raise MessageNotReadable(reason="it does not begin with a zero byte and the id of a schema")
        number = int.from_bytes(data[1:PREFIX_BYTES], "big")
        schema = _SCHEMAS.get((self.registry, number)) or self._fetched(number)
        wanted = None if self.schema is None else _parsed(self.schema)
        body = io.BytesIO(data)
        body.seek(PREFIX_BYTES)
        try:
            record = fastavro.schemaless_reader(body, schema, wanted)
        except Exception as error:  # noqa: BLE001  # whatever fastavro raises for bytes that are none
            reason = str(error) or type(error).__name__
            raise MessageNotReadable(reason=f"its bytes are not of schema {number}: {reason}") from None
        if body.read(1):
            raise MessageNotReadable(reason=f"it has more bytes than schema {number} says")
        return record

    def _fetched(self, number: int) -> Any:
        """Return the schema of an id. Raises MessageNotReadable, LogUnavailable, LogRefused."""
        doing = f"asking for schema {number}"
        request = urllib.request.Request(f"{self.registry.rstrip('/')}/schemas/ids/{number}")  # the user's own URL
        if self.user is not None:
            login = base64.b64encode(f"{self.user}:{self.password or ''}".encode()).decode()
            request.add_header("Authorization", f"Basic {login}")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:  # the user's own URL
                schema_answer = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404 and _error_code(error) == UNKNOWN_SCHEMA:
                raise MessageNotReadable(reason=f"the registry {self.registry} does not have schema {number}") from None
            kind = LogUnavailable if error.code in _PASSING else LogRefused
            raise kind(log=self.registry, doing=doing, reason=f"HTTP status {error.code}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise LogUnavailable(log=self.registry, doing=doing, reason=reason) from None
        if not isinstance(schema_answer, dict) or not isinstance(schema_answer.get("schema"), str):
            raise LogRefused(log=self.registry, doing=doing, reason="the answer is not that of a schema registry")
        if schema_answer.get("schemaType", "AVRO") != "AVRO":
            raise MessageNotReadable(reason=f"schema {number} is {schema_answer['schemaType']}, not Avro")
        if subjects := [each["subject"] for each in schema_answer.get("references", ())]:
            raise MessageNotReadable(reason=f"schema {number} refers to others, which is not supported: {', '.join(subjects)}")
        fastavro = _fastavro()
        try:
            parsed = _SCHEMAS[self.registry, number] = fastavro.parse_schema(json.loads(schema_answer["schema"]))
        except Exception as error:  # noqa: BLE001  # whatever fastavro raises for a schema that is none
            raise MessageNotReadable(reason=f"schema {number} is not valid: {str(error) or type(error).__name__}") from None
        return parsed


@functools.lru_cache(maxsize=64)
def _parsed(schema: str) -> Any:
    """Return the schema of an application, parsed once in a process."""
    return _fastavro().parse_schema(json.loads(schema))


def _error_code(answer: urllib.error.HTTPError) -> Any:
    """Return the error code in the body of a registry's answer; None if there is none."""
    try:
        return json.load(answer)["error_code"]
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException):
        return None


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise PackageMissing(needed_by="AvroDecoder", package="fastavro", install="'dagflow[avro]'") from error
    return fastavro
