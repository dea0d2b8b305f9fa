"""Recordings of a catalog after random changes, against a plain dict of their states."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.builders.built_archive import ENTRY
from support.damage.overwriting import overwrite

from aerotape.catalog import layout
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.errors import CatalogError, UnknownRecordingError

CHANGES = 60
Model = dict[int, RecordingState]


def check(catalog: Catalog, model: Model, rng: random.Random) -> None:
    """Check all that finds recordings; each has its own id as session id."""
    valid = sorted(id_ for id_, state in model.items() if state == RecordingState.VALID)
    from_id = rng.randrange(-2, max(model, default=0) + 3)
    following = [id_ for id_ in valid if id_ >= from_id]
    assert list(catalog.recording_ids(from_id)) == following
    assert (len(catalog), catalog.entry_count) == (len(valid), len(model))
    assert list(catalog.all_recording_ids()) == sorted(model)
    assert list(catalog.purged_ids()) == [
        id_ for id_ in sorted(model) if model[id_] == RecordingState.DELETED
    ]
    for id_ in range(-1, max(model, default=0) + 2):
        assert catalog.has_entry(id_) == (id_ in model)
        assert catalog.has_recording(id_) == (id_ in valid)
        if id_ in model:
            assert catalog.stored_state(id_) == model[id_]
        if id_ in valid:
            assert catalog.descriptor(id_).session_id == catalog.entry(id_).recording_id == id_
        else:
            with pytest.raises(UnknownRecordingError):
                catalog.wire_descriptor(id_)
    limit, found = rng.randrange(1, 5), list[int]()
    next_id, last_id = from_id, max(model, default=0)
    while next_id <= last_id:
        run = catalog.descriptors(next_id, limit, scan_limit=3)
        found += run.ids
        assert next_id < run.next_id or not run.ids
        next_id = run.next_id if run.next_id > next_id else last_id + 1
    assert found == following
    some = rng.sample(range(-1, last_id + 3), 3)
    assert [e.recording_id for e in catalog.entries_of(some)] == sorted(model.keys() & some)
    if valid:
        wanted = rng.choice(valid)
        assert catalog.find_last(0, wanted, ENTRY["stream_id"], b"") == wanted


def change(catalog: Catalog, model: Model, rng: random.Random) -> None:
    """Make one random change."""
    next_id = catalog.next_recording_id
    match rng.choice(("add", "add", "add", "insert", "state", "state", "state", "channel", "all")):
        case "add":
            if rng.random() < 0.3:
                catalog.avoid_ids(range(next_id, next_id + rng.randrange(3)))
            next_id = catalog.next_recording_id
            assert catalog.add_recording(**{**ENTRY, "session_id": next_id}) == next_id
            model[next_id] = RecordingState.VALID
        case "insert":
            id_, state = rng.randrange(next_id + 2), rng.choice(list(RecordingState))
            fields = {**ENTRY, "session_id": id_}
            descriptor = RecordingDescriptor(
                recording_id=id_, stop_position=-1, stop_timestamp_ms=-1, **fields
            )
            if id_ in model:
                with pytest.raises(CatalogError, match=f"there is a recording {id_} "):
                    catalog.insert_recording(descriptor, state)
            else:
                catalog.insert_recording(descriptor, state)
                model[id_] = state
        case "state" if model:
            id_ = rng.choice(list(model))
            model[id_] = rng.choice(list(RecordingState))
            catalog.change_state(id_, model[id_])
        case "channel" if RecordingState.VALID in model.values():
            id_ = rng.choice([id_ for id_, state in model.items() if state == 1])
            channel = "aeron:ipc?alias=" + "x" * rng.randrange(200)
            catalog.replace_channel(id_, stripped_channel=channel, original_channel=channel)
        case "all" if rng.random() < 0.3:
            removed = [id_ for id_, state in model.items() if state != RecordingState.VALID]
            if rng.random() < 0.5:
                catalog.compact()
            else:
                removed = rng.sample(list(model), len(model) // 4)
                catalog.compact(removed)
            for id_ in removed:
                del model[id_]


@pytest.mark.parametrize("seed", range(30))
def test_every_lookup_agrees_with_a_dict(tmp_path: Path, seed: int) -> None:
    """After each change, by the writer, and at times by a reader and after reopening."""
    rng = random.Random(seed)
    model: Model = {}
    catalog = Catalog.open(tmp_path, create=True)
    for _ in range(CHANGES):
        change(catalog, model, rng)
        check(catalog, model, rng)
        if rng.random() < 0.2:
            with Catalog.open(tmp_path, read_only=True) as reader:
                check(reader, model, rng)
            catalog.close()
            catalog = Catalog.open(tmp_path)
            check(catalog, model, rng)
    catalog.close()


@pytest.mark.parametrize("seed", range(30))
def test_damaged_ids_hide_no_other_recording(tmp_path: Path, seed: int) -> None:
    """An entry is identified if just as many ids are missing as are damaged; others stay."""
    rng = random.Random(seed)
    ids = sorted(rng.sample(range(30), 12))
    with Catalog.open(tmp_path, create=True) as catalog:
        for id_ in ids:
            catalog.avoid_ids(range(id_))
            catalog.add_recording(**{**ENTRY, "session_id": id_})
        damaged = sorted(rng.sample(ids[1:], 4))
        places = [catalog.entry(id_).offset for id_ in damaged]
        next_id = catalog.next_recording_id
    at = layout.DESCRIPTOR_HEADER_LENGTH + layout.RECORDING_ID_OFFSET
    for id_, place in zip(damaged, places, strict=True):
        # One that is too high is only recognised if the next one is sound.
        is_next_damaged = any(each in damaged for each in ids[ids.index(id_) + 1 :][:1])
        wrong = rng.choice((-1, -(1 << 50), -1 if is_next_damaged else 1 << 50))
        overwrite(tmp_path / layout.CATALOG_FILE_NAME, place + at, layout.LONG.pack(wrong))
    sound = [id_ for id_ in ids if id_ not in damaged]
    known = []
    for low, high in zip(sound, [*sound[1:], next_id], strict=True):
        between = [id_ for id_ in damaged if low < id_ < high]
        known += between if len(between) == high - low - 1 else []
    with Catalog.open(tmp_path) as catalog:
        assert list(catalog.recording_ids()) == sorted([*sound, *known])
        assert [entry.offset for entry in catalog.unidentified_entries()] == [
            place for id_, place in zip(damaged, places, strict=True) if id_ not in known
        ]
        assert list(catalog.descriptors(0, 100).ids) == sound
        for id_ in known:
            assert catalog.entry(id_).offset == places[damaged.index(id_)]
            with pytest.raises(CatalogError, match="its recording id reads"):
                catalog.descriptor(id_)
        next_id = catalog.next_recording_id
        assert catalog.add_recording(**{**ENTRY, "session_id": next_id}) == next_id
        assert list(catalog.recording_ids()) == sorted([*sound, *known, next_id])
        for id_ in (*known, *sound[::2]):
            catalog.change_state(id_, RecordingState.DELETED)
        assert list(catalog.recording_ids()) == sorted([*sound[1::2], next_id])
        catalog.change_state(sound[0], RecordingState.VALID)
        assert list(catalog.recording_ids(sound[0])) == sorted([sound[0], *sound[1::2], next_id])
