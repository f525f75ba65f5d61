"""The archive's `bin/python`: a script that starts the Python of the machine, when it is one that the libraries were built for.

A virtual environment would name the place of Python on the machine that made it. On an executor, it may be another.
"""

from __future__ import annotations

import shlex
import sys

import attrs

ENVIRONMENT = "environment"
"""The folder into which Spark unpacks the archive."""
PYTHON = f"./{ENVIRONMENT}/bin/python"
"""The archive's Python, seen from an executor's working folder."""
VARIABLE = "DAGFLOW_PYTHON"
"""The environment variable that names an executor's Python, where it is not on PATH."""
COMPLAINT = "dagflow-package:"
"""The start of the script's message on standard error."""

FOLDER_VARIABLE = "DAGFLOW_PACKAGES"
"""The environment variable that names an executor's folder of unpacked packages."""

_SCRIPT = r"""#!/bin/sh
# Starts this machine's Python @VERSION@ with the libraries of the package @NAME@.
host=$(uname -n 2>/dev/null || hostname)
fail() { echo "@COMPLAINT@ $1" >&2; exit 1; }
seen=
for python in "${@VARIABLE@:-}" python@VERSION@ python3 python /usr/local/bin/python@VERSION@ /usr/bin/python@VERSION@; do
  [ -n "$python" ] || continue
  path=$(command -v "$python" 2>/dev/null) || continue
  kind=$("$path" -c '
import sys
of = getattr(sys, "implementation", None)
tag = getattr(of, "cache_tag", "python-%d%d" % sys.version_info[:2])
print("%s%s %s" % (tag, getattr(sys, "abiflags", ""), getattr(of, "_multiarch", sys.platform)))
' 2>/dev/null) || continue
  [ "$kind" = "@KIND@" ] && break
  seen="$seen${seen:+, }$path is $kind"
  kind=
done
[ "${kind:-}" = "@KIND@" ] ||
  fail "@NAME@ needs Python @VERSION@ (@KIND@), and $host has none: ${seen:-there is no Python}"
@PLACE@
PYTHONPATH="$here/@LIBRARIES@${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec "$path" "$@"
"""
_BESIDE = r"""here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1"""
_SHARED = r"""here=${@FOLDER_VARIABLE@:-/var/tmp/dagflow-packages-$(id -u)}/@UNPACKED@
reason=$("$path" -I -c '
import os, shutil, sys, tarfile, tempfile, time

def unpack(archive, place):
    top = os.path.dirname(place)
    os.makedirs(top, 0o700, exist_ok=True)
    if os.path.islink(top) or os.lstat(top).st_uid != os.getuid() or os.lstat(top).st_mode & 0o022:
        raise OSError("%s is not a folder of this user alone" % top)
    if not os.path.isdir(place):
        part = tempfile.mkdtemp(prefix=".part-", dir=top)
        try:
            with tarfile.open(archive) as file:
                file.extractall(part)
            os.rename(part, place)
        except OSError:  # another process may have been faster
            shutil.rmtree(part, ignore_errors=True)
            if not os.path.isdir(place):
                raise
        for name in os.listdir(top):  # what was not used for a month
            if os.lstat(os.path.join(top, name)).st_mtime < time.time() - 30 * 86400:
                shutil.rmtree(os.path.join(top, name), ignore_errors=True)
    os.utime(place)

try:
    unpack(*sys.argv[1:])
except Exception as error:
    sys.exit(str(error))
' @ARCHIVE@ "$here" 2>&1) || fail "@NAME@ cannot be unpacked on $host: $reason" """


@attrs.frozen
class Interpreter:
    """A Python as libraries see it: its version, its kind (`cpython-311 x86_64-linux-gnu`)."""

    version: str
    kind: str

    @classmethod
    def here(cls) -> Interpreter:
        """Return the Python of this process."""
        tag = f"{sys.implementation.cache_tag}{sys.abiflags}"
        return cls(
            f"{sys.version_info[0]}.{sys.version_info[1]}", f"{tag} {getattr(sys.implementation, '_multiarch', sys.platform)}"
        )

    @property
    def libraries(self) -> str:
        """The folder of libraries in the archive."""
        return f"lib/python{self.version}/site-packages"


def launcher(name: str, interpreter: Interpreter, shared: str = "") -> bytes:
    """Return the script of a package with that name.

    The libraries lie beside it. Where `shared` is the path of an archive that all machines see, the script unpacks that one, once
    on each machine.
    """
    unpacked = shared.rpartition("/")[2].removesuffix(".tar.gz")
    values = {
        "PLACE": _SHARED.rstrip() if shared else _BESIDE,
        "NAME": name,
        "VERSION": interpreter.version,
        "KIND": interpreter.kind,
        "LIBRARIES": interpreter.libraries,
        "VARIABLE": VARIABLE,
        "FOLDER_VARIABLE": FOLDER_VARIABLE,
        "COMPLAINT": COMPLAINT,
        "UNPACKED": unpacked,
        "ARCHIVE": shlex.quote(shared),
    }
    text = _SCRIPT
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text.encode()
