"""Files of fsspec for Arrow, with the times at which they were written.

Arrow looks for these under one name only; HDFS has others.
"""

from __future__ import annotations

from typing import Any, Final

from pyarrow.fs import FileInfo, FSSpecHandler

_MILLISECONDS: Final = ("modificationTime", "modification_time")


class DatedHandler(FSSpecHandler):  # type: ignore[misc]  # pyarrow has no type information
    """An fsspec file system as one of Arrow's. Can be pickled."""

    @staticmethod
    def _create_file_info(path: str, info: dict[str, Any]) -> FileInfo:
        for name in _MILLISECONDS:
            if "mtime" not in info and isinstance(info.get(name), int):
                info = {**info, "mtime": info[name] / 1000}
        return FSSpecHandler._create_file_info(path, info)
