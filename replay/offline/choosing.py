"""The recordings of a directory that a selection has."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from aerotape.errors import CatalogError, UnknownRecordingError

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import ArchiveDirectory, Recording
    from aerotape.replay.offline.selection import Selection


def choose_recordings(
    directory: ArchiveDirectory, selection: Selection, followed: Collection[int] = ()
) -> list[Recording]:
    """Return the recordings of a selection, by ascending scope and id.

    Damaged ones are included if it has their ids: their channel and stream are unknown.

    Raises:
        UnknownRecordingError: an id of the selection does not exist.
    """
    if selection.scope_ids is not None:
        return matching(_choose_by_scope(directory, selection), selection, followed)
    recordings = directory.recordings()
    if selection.recording_ids is not None:
        # Read the catalog once; `directory.recording` raises for an id that is not in it.
        known = {recording.recording_id: recording for recording in recordings}
        ids = dict.fromkeys(selection.recording_ids)
        recordings = [known.get(id) or directory.recording(id) for id in ids]
    return matching(recordings, selection, followed)


def _choose_by_scope(directory: ArchiveDirectory, selection: Selection) -> list[Recording]:
    """Return the recordings of the selected scopes with the selected ids."""
    recordings = directory.recordings_of_scopes(selection.scope_ids)
    if selection.recording_ids is None:
        return recordings
    there = {recording.recording_id for recording in recordings}
    for id in selection.recording_ids:
        if id not in there:
            raise UnknownRecordingError(
                f"no recording with id {id} in the scopes of the selection in {directory.path}", id
            )
    return [each for each in recordings if each.recording_id in selection.recording_ids]


def matching(
    recordings: Iterable[Recording], selection: Selection, followed: Collection[int] = ()
) -> list[Recording]:
    """Return the recordings that match the selection by their descriptors, and damaged ones.

    Those whose keys are in `followed` were selected before.
    """
    return [
        recording
        for recording in recordings
        if recording.damage
        or selection.matches(
            recording.descriptor,
            live=recording.descriptor.is_active,
            is_followed=recording.key in followed,
        )
    ]


def without_damaged(recordings: Iterable[Recording], selection: Selection) -> list[Recording]:
    """Leave out damaged recordings with a warning.

    Raises:
        CatalogError: a recording that the selection has by id is damaged.
    """
    sound = []
    for recording in recordings:
        try:
            recording.check()
            sound.append(recording)
        except CatalogError as error:
            if selection.recording_ids is not None:
                raise
            warnings.warn(f"left out: {error}", RuntimeWarning, stacklevel=2)
    return sound
