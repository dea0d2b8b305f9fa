"""The cause of a Spark failure in one line, from the long message that Spark reports."""

from __future__ import annotations

import re
from typing import Final

_PYTHON: Final = re.compile(r"(?!org\.|java\.|py4j\.)[\w.]*(Error|Exception|Invalid): ")
_LOST_TASK: Final = re.compile(r"Lost task .*? executor [^)]*\): (.*)")
_JAVA_CLASS: Final = re.compile(r"(?:[a-z]\w*\.)+[A-Z][\w$]*: ")
_ADVICE: Final = (
    (
        re.compile(r"ModuleNotFoundError|Cannot run program"),
        "set PYSPARK_PYTHON to a Python with aerotape and its extra spark",
    ),
    (
        re.compile(r"worker exited unexpectedly"),
        "was it killed, for example for lack of memory? fewer concurrent tasks need less",
    ),
)


def cause(error: Exception) -> str:
    """Find the line of a message of py4j or PySpark with the cause, in Python or in Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if python := [line for line in lines if _PYTHON.match(line)]:
        line = python[0]
    else:
        # py4j reports first the call, then the Java exception.
        thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
        line = (thrown or lines or [type(error).__name__])[0]
        if lost := _LOST_TASK.search(line):
            line = lost[1]
        line = _JAVA_CLASS.sub("", line, count=1) if _JAVA_CLASS.match(line) else line
    advice = [f" ({text})" for about, text in _ADVICE if about.search(line)]
    return line + "".join(advice)
