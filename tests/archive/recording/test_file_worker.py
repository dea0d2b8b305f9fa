"""The thread for slow calls of the file system."""

from __future__ import annotations

from support.own_process import run_python

_SCRIPT = """
import atexit
from aerotape.archive.recording.file_worker import FileWorker

worker = FileWorker("files", lambda: None)
print(worker.submit(lambda: 1).result(), flush=True)

def at_exit():
    print(worker.submit(lambda: 2).result(), flush=True)
    worker.close()
    try:
        worker.submit(lambda: 3)
    except RuntimeError:
        print("closed")

atexit.register(at_exit)
"""


def test_calls_are_made_while_the_interpreter_ends() -> None:
    """An archive that a script has not closed writes its files at the exit; a closed worker makes
    no call.
    """
    done = run_python("-c", _SCRIPT)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "2", "closed"]), done.stderr
