"""From the exceptions of drivers, which are of many libraries, to dagflow's: who did not answer, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dagflow.errors import DagflowError
from dagflow.storage.errors import BucketMissing, CredentialsMissing, StorageError, StorageUnreachable
from dagflow.storage.transient import is_transient

# By name, since the libraries are loaded by drivers only, and not all of them are installed.
_CREDENTIALS = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "DefaultCredentialsError",
    }
)
_UNREACHABLE = frozenset(
    {
        "EndpointConnectionError",
        "ConnectTimeoutError",
        "ClientConnectorError",
        "ClientConnectorDNSError",
        "gaierror",
        "ServiceRequestError",  # of Azure
    }
)
_REFUSED_KEYS = frozenset(
    {
        *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),  # of S3
        *("AuthenticationFailed", "AuthorizationFailure", "InvalidAuthenticationInfo", "NoAuthenticationInformation"),  # of Azure
    }
)
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_BESIDE_FSSPEC = {"http": ("aiohttp",), "https": ("aiohttp",)}  # libraries that its own modules import
_PLAIN = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)


def driver_modules(urls: Iterable[str]) -> set[str]:
    """Return the modules that fsspec loads for URLs. Paths have none.

    >>> sorted(driver_modules(["s3://logs/a", "/tmp/out", "https://example.org/x.csv"]))
    ['aiohttp', 's3fs']
    """
    from fsspec.registry import known_implementations

    names: set[str] = set()
    for scheme in {url.partition("://")[0].rpartition("::")[2] for url in urls if "://" in url}:
        names |= set(_BESIDE_FSSPEC.get(scheme, ()))
        names |= {known_implementations.get(scheme, {}).get("class", "").partition(".")[0]}
    return names - {"", "fsspec"}


@contextmanager
def driver_errors(path: str, doing: str) -> Iterator[None]:
    """Turn the errors of drivers in the block into builtin OSErrors about a path, or StorageErrors with the cause."""
    try:
        yield
    except DagflowError:
        raise
    except Exception as error:
        explained = explain(error, path, doing)
        if explained is not None:
            raise explained from error
        raise


def explain(error: Exception, path: str, doing: str) -> StorageError | None:
    """Return the error with the cause, None for those that callers expect (no such file) and for mistakes in code."""
    chain = _chain(error)
    names = {type(each).__name__ for each in chain}
    codes = {code for each in chain if (code := code_of(each)) is not None}
    reason = str(chain[-1]).partition("\n")[0] or type(chain[-1]).__name__
    if codes & _NO_BUCKET:
        return BucketMissing(path=path, doing=doing, reason=reason)
    if names & _CREDENTIALS or codes & _REFUSED_KEYS:
        return CredentialsMissing(path=path, doing=doing, reason=reason)
    if names & _UNREACHABLE or (isinstance(error, ConnectionError | TimeoutError)):
        return StorageUnreachable(path=path, doing=doing, reason=reason)
    if isinstance(error, _PLAIN):
        cause = next((each for each in chain[1:] if isinstance(each, ConnectionError | TimeoutError)), None)
        return None if cause is None else StorageUnreachable(path=path, doing=doing, reason=str(cause))
    if is_transient(error) or isinstance(error, OSError | TypeError | ValueError | NotImplementedError | AttributeError):
        return None  # translated where it is known what it means
    return StorageError(path=path, doing=doing, reason=f"{type(error).__name__}: {error}") if codes else None


def code_of(error: BaseException) -> str | None:
    """Return the code in an object store's answer, as botocore or the client of Azure keeps it."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else getattr(error, "error_code", None)
    return None if code is None else str(getattr(code, "value", code))


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__
    return chain
