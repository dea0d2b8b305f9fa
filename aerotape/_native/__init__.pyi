"""The interface of the native core for Python.

Units are in the names: positions and lengths are bytes, `_ns` nanoseconds, `_ms` milliseconds.
Every call that can wait releases the interpreter. Failures are the classes of `aerotape.errors`.
The modules named here are parts of this stub, not of the native core.
"""

from aerotape._native._aeron import *
from aerotape._native._aeron import _Pending as _Pending
from aerotape._native._aeron import _PublicationBase as _PublicationBase
from aerotape._native._entity import *
from aerotape._native._files import *
from aerotape._native._raft import *
from aerotape._native._recorder import *
from aerotape._native._scan import *
