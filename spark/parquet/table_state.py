"""Manifests and files of a table, read once: only the job with its lock changes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aerotape.errors import StorageError
from aerotape.spark.parquet.commit import recording_folder
from aerotape.spark.parquet.manifest import MANIFEST_NAME, Manifest
from aerotape.spark.parquet.store import OutputStore

_FILE: Final = re.compile(r"recording_id=(-?[0-9]+)/(.+)")
# Waiting for responses of remote storage takes no processor time.
_READERS: Final = 16


class TableState:
    """Manifests and files of a table, by recording id."""

    def __init__(self, store: OutputStore) -> None:
        """Create a state; nothing is read yet."""
        self._store = store
        self._files: dict[int, set[str]] | None = None
        self._data: dict[int, bytes | None] = {}
        self._manifests: dict[int, Manifest] = {}

    def read(self, recording_ids: Iterable[int]) -> None:
        """Read the manifests of recordings, in few requests (StorageError)."""
        files = self._listed()
        new = [id for id in recording_ids if id in files and id not in self._data]
        names = [f"{recording_folder(id)}/{MANIFEST_NAME}" for id in new]
        with ThreadPoolExecutor(_READERS) as pool:
            self._data.update(zip(new, pool.map(self._store.read, names), strict=True))

    def has(self, recording_id: int) -> bool:
        """Return whether a recording's folder has any file."""
        return recording_id in self._listed()

    def files(self, recording_id: int) -> list[str]:
        """Return the Parquet files in a recording's folder, in its manifest or not."""
        names = self._listed().get(recording_id, ())
        return sorted(name for name in names if name.endswith(".parquet"))

    def manifest(self, recording_id: int) -> Manifest | None:
        """Return a recording's manifest; None when the recording is not in the table.

        Raises:
            StorageError: it cannot be read, or does not fit the files that are there.
        """
        known = self._manifests.get(recording_id)
        if known is not None or not self.has(recording_id):
            return known
        self.read([recording_id])
        folder = f"{self._store.name}/{recording_folder(recording_id)}"
        data = self._data[recording_id]
        manifest = None if data is None else Manifest.decode(data, f"{folder}/{MANIFEST_NAME}")
        files = set(self.files(recording_id))
        named = set() if manifest is None else {entry.name for entry in manifest.files}
        if files != named:
            odd = min(files ^ named)
            what = (
                "is missing, and the manifest names it"
                if odd in named
                else "is not in the manifest"
            )
            raise StorageError(
                f"{folder}/{odd} {what}: correct that, or convert the recording again with "
                "--overwrite",
                folder,
            )
        if manifest is not None:
            self._manifests[recording_id] = manifest
        return manifest

    def readable_manifest(self, recording_id: int) -> Manifest | None:
        """Return a recording's manifest, matching its files or not; None when it is damaged.

        Raises:
            StorageError: the storage cannot be read.
        """
        self.read([recording_id])
        data = self._data.get(recording_id)
        if data is None:
            return None
        try:
            return Manifest.decode(data, MANIFEST_NAME)
        except StorageError:
            return None

    def committed(self, recording_id: int, manifest: Manifest) -> None:
        """Update the state after a commit."""
        self._manifests[recording_id] = manifest
        names = {MANIFEST_NAME, *(entry.name for entry in manifest.files)}
        self._listed()[recording_id] = names

    def _listed(self) -> dict[int, set[str]]:
        if self._files is None:
            self._files = {}
            for path in self._store.files():
                if match := _FILE.fullmatch(path):
                    self._files.setdefault(int(match[1]), set()).add(match[2])
        return self._files
