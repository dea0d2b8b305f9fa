"""The fields of what commands print with --json: each field once, and the fields of each command.

In a list of fields, `name?` is one that may be absent and `name=type` one with another type than in
`FIELDS`. A type is int, num, str, bool, null, any, `[type]` or `{record}`, with `|` between
alternatives. A command prints a record, an array of them, or one on each line.
"""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    "archive": (
        "event archive_id archive_dir aeron_dir control_channel control_stream_id "
        "local_control_channel local_control_stream_id"
    ),
    "archive --print-config": "name value=int|str origin default",
    "bench": "aerotape python machine processors dir measurements",
    "cat": "{message}",
    "counters": "{counter}",
    "counters --watch": "timestamp_ms counters=[{counter}]",
    "doctor": "check state found fix",
    "driver": "event aeron_dir",
    "entity append": "topic key from_seq_nr to_seq_nr partition offset next_position",
    "entity copy-store": "topic journals events snapshots",
    "entity delete": "topic key deleted partition? offset? next_position?",
    "entity follow": "topic key change events?=[{event}] to_seq_nr? partition offset positions=str",
    "entity list": (
        "topic? type? partitions? recorded_bytes? replicated_bytes? key? partition? seq_nr? "
        "deleted_to? updated_ms? expires_ms?=int|null"
    ),
    "entity pointer": "topic key seq_nr=int|null",
    "entity purge": "topic key partition offset next_position",
    "entity purge-expired": "topic key expires_ms purged",
    "entity read": (
        "seq_nr tags payload_type payload timestamp_ms partition offset origin=str|null version "
        "metadata payload_metadata expire_after_ns"
    ),
    "entity replicate": "topic partition offset next_position end_position records events",
    "entity retention": (
        "topic partition recording_id start_position segment_files replicated_to held_files"
    ),
    "entity save-snapshot": "topic key seq_nr partition offset next_position",
    "entity snapshot": (
        "seq_nr payload_type payload timestamp_ms partition offset origin=str|null version metadata"
    ),
    "errors": "{error}",
    "extend": "subscription_id recording_id channel stream_id source auto_stop",
    "find": "recording_id",
    "journal export": "recording_id directory records damage=str|null",
    "journal import": (
        "recording_id records first_index last_index start_position stop_position damage=str|null"
    ),
    "journal list": (
        "journal index asqn checksum term type=str|null lowest_asqn highest_asqn raft_record "
        "timestamp? members?=[{raft_member}]|null old_members?"
    ),
    "journal show": (
        "journal segment offset length index asqn checksum term type=str|null lowest_asqn "
        "highest_asqn raft_record timestamp? members?=[{raft_member}]|null old_members? "
        "records?=any data?=str"
    ),
    "journal verify": "segment offset index=int|null problem why",
    "ledger add": (
        "scope_id ledger_id qualified_name entries_added last_entry_id last_add_confirmed"
    ),
    "ledger create": "{ledger}",
    "ledger delete": "scope_id ledger_id qualified_name deleted",
    "ledger import-archive": "scope_id ledger_id qualified_name result length directory error",
    "ledger list": "{ledger}",
    "ledger open": "{ledger}",
    "ledger read": "scope_id ledger_id qualified_name entry_id last_add_confirmed? length? payload",
    "ledger replace-mirror": "{ledger}",
    "ledger replicate-archive": "any",
    "ledger scopes": "scope_id is_own",
    "ledger status": "{ledger}",
    "ledger sync": "scope_id ledger_id qualified_name last_add_confirmed",
    "list": (
        "recording_id start_timestamp_ms stop_timestamp_ms start_position stop_position "
        "initial_term_id segment_file_length term_buffer_length mtu_length session_id stream_id "
        "stripped_channel original_channel source_identity is_active recorded_position "
        "recorded_bytes"
    ),
    "metrics": "name labels value=num",
    "parquet": (
        "out_dir messages recording_bytes payload_bytes parquet_bytes files elapsed_s "
        "recordings=[{converted}]"
    ),
    "ping": "archive_id protocol_version control_session_id round_trips min_us median_us max_us",
    "plot": "file recording_id messages gaps",
    "position": (
        "recording_id start_position recording_position stop_position max_recorded_position "
        "length_bytes segment_file_length term_buffer_length extension_parameters"
    ),
    "publish": "channel stream_id session_id messages bytes dropped position",
    "purge": "recording_id segment_files_deleted",
    "record": "subscription_id channel stream_id source auto_stop",
    "replay": (
        "recording_id? messages? bytes? start_position? end_position? position? session_id? "
        "stream_id? term_id? term_offset? flags? reserved_value? length? payload? "
        "replay_session_id? channel?"
    ),
    "replicate": (
        "replication_id src_recording_id src_control_channel dst_recording_id? position? signals?"
    ),
    "retain": "dry_run removals kept",
    "schema": "package? id? version?=str|int messages?=[{sbe_message}] problem?",
    "segments": "recording_id start_position segment_files_deleted?",
    "signals": "signal recording_id position stream_id session_id channel",
    "sql": "any",
    "stop": "stopped subscription_id? channel? stream_id?",
    "stop-replay": "stopped recording_id",
    "stop-replication": "stopped replication_id",
    "subscribe": (
        "position end_position session_id stream_id term_id term_offset flags reserved_value "
        "length payload received_timestamp_ms"
    ),
    "subscriptions": "subscription_id stream_id channel",
    "table": (
        "out_dir messages recording_bytes payload_bytes parquet_bytes files elapsed_s "
        "recordings=[{converted}]"
    ),
    "tool capacity": "capacity_bytes dry_run",
    "tool checksum": (
        "recording_id descriptor_changed segments frames frames_changed frames_wrong problems "
        "dry_run"
    ),
    "tool compact": (
        "recordings_removed entry_bytes capacity_bytes_before segment_files_deleted=[str] "
        "kept=[{kept_file}] dry_run"
    ),
    "tool count-entries": "entries",
    "tool delete-orphaned-segments": "segment_files_deleted=[str] kept=[{kept_file}] dry_run",
    "tool describe": (
        "recording_id? state? suspect? damage? start_timestamp_ms? stop_timestamp_ms? "
        "start_position? stop_position? initial_term_id? segment_file_length? term_buffer_length? "
        "mtu_length? session_id? stream_id? stripped_channel? original_channel? source_identity? "
        "checksum? mark_file? catalog? recordings?=[{entry}]"
    ),
    "tool describe-all": "mark_file catalog recordings=[{entry}]",
    "tool diff": "recording_id only_in fields position detail compared_bytes same",
    "tool dump": (
        "recording_id position length flags frame_type term_offset session_id stream_id term_id "
        "reserved_value payload"
    ),
    "tool errors": "{error}",
    "tool export": "recording_id start_position stop_position length file dry_run",
    "tool import": "recording_id start_position stop_position length dry_run",
    "tool mark-invalid": "recording_id state changed dry_run",
    "tool mark-valid": "recording_id state changed dry_run",
    "tool migrate": "mark_file_version catalog_version steps dry_run",
    "tool pid": "pid",
    "tool repair": (
        "recording_id ok repaired refused state stays_hidden start_position_before start_position "
        "stop_position_before stop_position damages filled segment_files_moved segment_files_made "
        "quarantine dry_run"
    ),
    "tool stats": (
        "recording_id stream_id channel from_position to_position messages payload_bytes "
        "fragments fragmented_messages incomplete_fragments padding_frames padding_bytes "
        "filler_frames filler_bytes min_bytes max_bytes lengths gap_count gap_bytes gaps=[{gap}] "
        "over bins duration_s length_bytes mean_bytes p50_bytes p90_bytes p99_bytes p999_bytes "
        "messages_per_s=null|num bytes_per_s"
    ),
    "tool time-index": (
        "recording_id? source? points? from_time? to_time? from_position?=int|null "
        "to_position?=int|null time? time_ns? position? estimate? points_kept? estimates? "
        "dry_run?"
    ),
    "tool verify": (
        "ok recording_id state active start_position stop_position segments frames payload_bytes "
        "checksums bad_places problems marked dry_run"
    ),
    "truncate": "recording_id stop_position bytes_removed segment_files_deleted",
    "update-channel": "recording_id stripped_channel original_channel",
    "users": "added? changed?=str role? user? iterations? removed?",
    "web": "event url",
}
"""The fields of each command's records; `{name}`: those of a record below."""

RECORDS: Final = {
    "bin": (
        "from_position to_position messages payload_bytes padding_bytes gap_bytes min_bytes "
        "median_bytes p99_bytes max_bytes from_time_ns to_time_ns"
    ),
    "catalog": "version capacity_bytes alignment_bytes next_recording_id recordings",
    "converted": (
        "recording_id result messages recording_bytes payload_bytes to_position=int|null warnings "
        "error"
    ),
    "counter": (
        "counter_id type_id value label registration_id owner_id reference_id key archive_id? "
        "control_session_id? recording_id? session_id?"
    ),
    "entry": (
        "recording_id state suspect damage start_timestamp_ms stop_timestamp_ms start_position "
        "stop_position initial_term_id segment_file_length term_buffer_length mtu_length "
        "session_id stream_id stripped_channel original_channel source_identity checksum"
    ),
    "error": "source path count first_timestamp_ms last_timestamp_ms text",
    "event": (
        "seq_nr tags payload_type payload timestamp_ms partition offset origin=str|null version "
        "metadata payload_metadata expire_after_ns"
    ),
    "gap": "from_position to_position kind detail",
    "kept": "recording_id size_bytes reasons in_use",
    "kept_file": "segment_file reason",
    "ledger": (
        "scope_id ledger_id qualified_name type state digest_type? last_add_confirmed? "
        "last_add_pushed? length_bytes? has_writer recording_id confirmed_position "
        "recorded_position created_ms write_quorum? ack_quorum? has_password? mirrors? members?"
    ),
    "lengths": "from_bytes to_bytes messages payload_bytes",
    "mark_file": (
        "path active version pid archive_id start_timestamp_ms activity_timestamp_ms "
        "control_channel control_stream_id local_control_channel local_control_stream_id "
        "events_channel events_stream_id aeron_directory errors"
    ),
    "marked": "state state_before stop_position stop_position_before bytes_behind reason",
    "measurement": (
        "what message_bytes rounds messages_per_s mb_per_s slowest_mb_per_s fastest_mb_per_s"
    ),
    "member": "channel is_connected lag_bytes error=str",
    "message": (
        "position end_position session_id stream_id term_id term_offset flags reserved_value "
        "length payload"
    ),
    "problem": "detail position path offset length",
    "raft_member": "member_id type updated",
    "removal": "recording_id new_start_position segment_files size_bytes reasons problem",
    "sbe_data": "name id since_version type primitive_type header_size character_encoding",
    "sbe_field": (
        "name id offset since_version presence type size primitive_type length character_encoding "
        "min_value max_value null_value"
    ),
    "sbe_group": (
        "name id since_version block_length fields=[{sbe_field}] groups data header_size?=any"
    ),
    "sbe_message": "name id since_version block_length fields=[{sbe_field}] groups data",
    "step": "version segment_files_renamed",
}
"""The fields of records that several commands print, or that are in others."""

FIELDS: Final = {
    "ack_quorum": "int: ack quorum",
    "active": "bool: whether it is in use",
    "activity_timestamp_ms": "int: last sign of life, epoch milliseconds; -1 after a stop",
    "added": "str: user that was added",
    "aeron_dir": "str: the media driver's directory",
    "aeron_directory": "str: the media driver's directory",
    "aerotape": "str: version of aerotape",
    "alignment_bytes": "int: alignment of entries, bytes",
    "archive_dir": "str: archive directory",
    "archive_id": "int: archive id",
    "asqn": "int: application sequence number, -1 for other records",
    "auto_stop": "bool: whether it stops with the stream",
    "bad_places": "int: number of problems",
    "bins": "[{bin}]: the recording in equal parts",
    "block_length": "int: length of the block, bytes",
    "bytes": "int: bytes of payloads",
    "bytes_behind": "int: bytes after the stop position",
    "bytes_per_s": "num|null: bytes per second",
    "bytes_removed": "int: bytes removed",
    "capacity_bytes": "int: capacity of the catalog, bytes",
    "capacity_bytes_before": "int: capacity before, bytes",
    "catalog": "{catalog}: the catalog",
    "catalog_version": "str: version of the catalog before",
    "change": "str: append, delete or purge",
    "changed": "bool: whether it was changed",
    "channel": "str: channel",
    "character_encoding": "str|null: character encoding",
    "check": "str: what was checked",
    "checksum": "int: checksum of the entry, 0 without one",
    "checksums": "int: frames whose checksum was verified",
    "compared_bytes": "int: bytes compared",
    "confirmed_position": "int: confirmed position, bytes",
    "control_channel": "str: control channel",
    "control_session_id": "int: control session id",
    "control_stream_id": "int: control stream id",
    "count": "int: number of observations",
    "counter_id": "int: counter id",
    "counters": "[{counter}]: the counters",
    "created_ms": "int: creation time, epoch milliseconds",
    "damage": "str: why the entry is damaged, empty if it is not",
    "damages": "any: what is damaged",
    "data": "[{sbe_data}]: the data fields",
    "default": "str: default value",
    "deleted": "bool: whether it existed",
    "deleted_to": "int|null: last deleted sequence number",
    "descriptor_changed": "bool: whether the descriptor's checksum was written",
    "detail": "str: what was found",
    "digest_type": "str: digest type",
    "dir": "str: directory",
    "directory": "str: directory",
    "dropped": "int: messages dropped because no subscriber was connected",
    "dry_run": "bool: whether nothing was changed",
    "dst_recording_id": "int: recording id in this archive",
    "duration_s": "num|null: recorded time, seconds",
    "elapsed_s": "num: time taken, seconds",
    "end_position": "int: position after the message, bytes",
    "entries": "int: number of entries",
    "entries_added": "int: number of entries added",
    "entry_bytes": "int: bytes of removed entries",
    "entry_id": "int: entry id",
    "error": "str|null: why it failed",
    "errors": "int: number of distinct errors in the error log",
    "estimate": "bool: whether the time is an estimate",
    "estimates": "int: points estimated from times of files",
    "event": "str: ready",
    "events": "int: number of events",
    "events_channel": "str: channel of recording events",
    "events_stream_id": "int: stream id of recording events",
    "expire_after_ns": "int|null: expiry after the last append, nanoseconds",
    "expires_ms": "int: expiry, epoch milliseconds",
    "extension_parameters": "str: parameters of a channel that extends the recording",
    "fastest_mb_per_s": "num: fastest round, MB per second",
    "fields": "any: values that differ, by field, or null for both the same",
    "file": "str: file written",
    "files": "int: number of files written",
    "filled": "any: positions that were filled with padding",
    "filler_bytes": "int: their bytes",
    "filler_frames": "int: frames that repair wrote",
    "first_index": "int: index of the first record",
    "first_timestamp_ms": "int: first observation, epoch milliseconds",
    "fix": "str|null: how to fix it",
    "flags": "int: flags of the first frame",
    "found": "str: what was found",
    "fragmented_messages": "int: messages of more than one frame",
    "fragments": "int: number of data frames",
    "frame_type": "int: frame type",
    "frames": "int: number of frames",
    "frames_changed": "int: frames whose checksum was written",
    "frames_wrong": "int: frames whose checksum was wrong",
    "from_bytes": "int: shortest length, bytes",
    "from_position": "int: first position, bytes",
    "from_seq_nr": "int: first sequence number",
    "from_time": "str|null: time of the first point, ISO 8601",
    "from_time_ns": "int|null: time of the first position, epoch nanoseconds",
    "gap_bytes": "int: bytes in gaps",
    "gap_count": "int: number of gaps",
    "gaps": "int: number of gaps",
    "groups": "[{sbe_group}]: the groups",
    "has_password": "bool: whether it has a password",
    "has_writer": "bool: whether a client may append",
    "header_size": "int: length of the length field, bytes",
    "held_files": "int: segment files that are kept for readers",
    "highest_asqn": "int: highest asqn",
    "id": "int: id",
    "in_use": "str: why the recording is kept, empty if no rule applies",
    "incomplete_fragments": "int: fragments of messages that are not whole",
    "index": "int: index of the record",
    "initial_term_id": "int: term id of the first term",
    "is_active": "bool: whether it is being recorded",
    "is_connected": "bool: whether it is connected",
    "is_own": "bool: whether it is the archive's own scope",
    "iterations": "int: PBKDF2 iterations",
    "journal": "str: journal",
    "journals": "int: number of journals",
    "kept": "[{kept}]: what is kept, and why",
    "key": "str: key of the entity; of a counter its key in hexadecimal",
    "kind": "str: kind",
    "label": "str: label",
    "labels": "any: labels of the metric",
    "lag_bytes": "int|null: bytes that it has not confirmed",
    "last_add_confirmed": "int|null: last entry confirmed, -1 without one",
    "last_add_pushed": "int|null: last entry written, -1 without one",
    "last_entry_id": "int: id of the last entry added",
    "last_index": "int: index of the last record",
    "last_timestamp_ms": "int: last observation, epoch milliseconds",
    "ledger_id": "str: ledger id, unsigned, decimal",
    "length": "int: length, bytes; of a schema's field the number of its values",
    "length_bytes": (
        "int|null: bytes between start and stop position; of a ledger bytes of payloads"
    ),
    "lengths": "[{lengths}]: histogram of lengths",
    "local_control_channel": "str: local control channel",
    "local_control_stream_id": "int: local control stream id",
    "lowest_asqn": "int: lowest asqn",
    "machine": "str: processor architecture",
    "mark_file": "{mark_file}|null: the mark file, null without one",
    "mark_file_version": "str: version of the mark file before",
    "marked": "{marked}|null: the marking that was made or is proposed, null if none",
    "max_bytes": "int: longest message, bytes",
    "max_recorded_position": "int: stop position, or that of the recording in progress",
    "max_us": "num: slowest, microseconds",
    "max_value": "any: greatest value, null for the type's",
    "mb_per_s": "num: MB per second, median",
    "mean_bytes": "num: mean length, bytes",
    "measurements": "[{measurement}]: the measurements",
    "median_bytes": "int: median length, bytes",
    "median_us": "num: median, microseconds",
    "member_id": "str: id of the broker",
    "members": "[{member}]: the archives of the ledger",
    "message_bytes": "int: length of messages, bytes",
    "messages": "int: number of messages",
    "messages_per_s": "int: messages per second",
    "metadata": "any: JSON that was given with the append",
    "min_bytes": "int: shortest message, bytes",
    "min_us": "num: fastest, microseconds",
    "min_value": "any: least value, null for the type's",
    "mirrors": "[str]: control channels of the mirrors",
    "mtu_length": "int: longest frame, bytes",
    "name": "str: name",
    "new_start_position": "int|null: start position after, null if the recording is removed",
    "next_position": "int: position after the record, bytes",
    "next_recording_id": "int: id of the next recording",
    "null_value": "any: value that stands for null",
    "offset": (
        "int: position in the partition's log, in the file, or in the block of a message, bytes"
    ),
    "ok": "bool: whether nothing is wrong",
    "old_members": "[{raft_member}]|null: the members before",
    "only_in": "any: null; or left or right, if only that directory has it",
    "origin": "str: where the value is from",
    "original_channel": "str: channel as it was given",
    "out_dir": "str: where the table is",
    "over": "str: position or time",
    "owner_id": "int: client id of the owner, 0: the media driver",
    "p50_bytes": "int: median length, bytes",
    "p90_bytes": "int: 90th percentile of lengths, bytes",
    "p999_bytes": "int: 99.9th percentile of lengths, bytes",
    "p99_bytes": "int: 99th percentile of lengths, bytes",
    "package": "str: package of the schema",
    "padding_bytes": "int: their bytes",
    "padding_frames": "int: frames without a message",
    "parquet_bytes": "int: bytes of Parquet files written",
    "partition": "int: partition of the topic",
    "partitions": "int: number of partitions",
    "path": "str: file",
    "payload": "any: payload: hexadecimal, or in the format asked for",
    "payload_bytes": "int: bytes of payloads",
    "payload_metadata": "any: JSON that was given with the event",
    "payload_type": "str: json, text, binary or none",
    "pid": "int: process id",
    "points": "int: number of points",
    "points_kept": "int: points kept",
    "position": "int: position in the stream, bytes",
    "positions": "str: positions of the partitions, for --from",
    "presence": "str: presence",
    "primitive_type": "str: primitive type",
    "problem": "str: what is wrong",
    "problems": "[{problem}]: what is wrong",
    "processors": "int: number of processors",
    "protocol_version": "str: protocol version of the archive",
    "purged": "bool: whether it was purged",
    "python": "str: version of Python",
    "qualified_name": "str: qualified id, 32 hexadecimal digits",
    "quarantine": "str|null: folder with copies of what was replaced",
    "raft_record": "str: bytes of the record, hexadecimal",
    "reason": "str: why",
    "reasons": "[str]: the rules that apply",
    "received_timestamp_ms": "int: when it was received, epoch milliseconds",
    "recorded_bytes": "int: bytes recorded",
    "recorded_position": "int|null: recorded position, bytes",
    "recording_bytes": "int: bytes of segment files converted",
    "recording_id": "int: recording id",
    "recording_position": "int: position of the recording in progress, -1 if stopped",
    "recordings": "int: number of recordings",
    "recordings_removed": "[int]: ids of the removed recordings",
    "records": "int: number of records",
    "reference_id": "int: registration id of the resource that it is about, 0 if unknown",
    "refused": "str: why it cannot be repaired, empty if it can",
    "registration_id": "int: registration id",
    "removals": "[{removal}]: what retention removes",
    "removed": "str: user that was removed",
    "repaired": "bool: whether it was repaired",
    "replay_session_id": "int: replay session id",
    "replicated_bytes": "int: bytes that the store has",
    "replicated_to": "int|null: position up to which replicators have it, bytes",
    "replication_id": "int: replication id",
    "reserved_value": "int: the frame's reserved value",
    "result": "str: outcome",
    "role": "str: role",
    "round_trips": "int: number of requests",
    "rounds": "int: number of rounds",
    "same": "bool: whether the frames are the same",
    "scope_id": "str: scope id, unsigned, decimal",
    "segment": "str: name of the segment file",
    "segment_file": "str: segment file",
    "segment_file_length": "int: length of segment files, bytes",
    "segment_files": "int: number of segment files",
    "segment_files_deleted": "int: number of segment files deleted",
    "segment_files_made": "[str]: segment files written",
    "segment_files_moved": "[str]: segment files moved into quarantine",
    "segment_files_renamed": "[[str]]: old and new name of each segment file",
    "segments": "int: number of segment files",
    "seq_nr": "int: sequence number of the event, from 1",
    "session_id": "int: session id of the stream",
    "signal": "str: recording signal",
    "signals": "[str]: recording signals received",
    "since_version": "int: version of the schema that added it",
    "size": "int: length, bytes",
    "size_bytes": "int: bytes",
    "slowest_mb_per_s": "num: slowest round, MB per second",
    "snapshots": "int: number of snapshots",
    "source": "str: source",
    "source_identity": "str: source identity",
    "src_control_channel": "str: control channel of the source archive",
    "src_recording_id": "int: recording id in the source archive",
    "start_position": "int: start position, bytes",
    "start_position_before": "int: start position before, bytes",
    "start_timestamp_ms": "int: start time, epoch milliseconds",
    "state": (
        "str: VALID, INVALID or DELETED; of a ledger OPEN, IN_RECOVERY or CLOSED; of a check OK, "
        "WARNING or FAILED"
    ),
    "state_before": "str: state before",
    "stays_hidden": "bool: whether it stays invalid",
    "steps": "[{step}]: what was changed for each version",
    "stop_position": "int|null: stop position, bytes; -1 while it is recorded",
    "stop_position_before": "int: stop position before, bytes; -1 without one",
    "stop_timestamp_ms": "int|null: stop time, epoch milliseconds; -1 while it is recorded",
    "stopped": "str: what was stopped",
    "stream_id": "int: stream id",
    "stripped_channel": "str: channel without parameters that do not identify it",
    "subscription_id": "int: recording subscription id",
    "suspect": "bool: whether it is marked as suspect",
    "tags": "[str]: tags of the event",
    "term": "int: raft term",
    "term_buffer_length": "int: length of a term, bytes",
    "term_id": "int: term id",
    "term_offset": "int: offset in the term, bytes",
    "text": "str: text",
    "time": "str: time, ISO 8601",
    "time_ns": "int: time, epoch nanoseconds",
    "timestamp": "int|null: time, epoch milliseconds",
    "timestamp_ms": "int: time, epoch milliseconds",
    "to_bytes": "int: first length that does not belong to it, bytes",
    "to_position": "int: position after the last byte",
    "to_seq_nr": "int: last sequence number",
    "to_time": "str|null: time of the last point, ISO 8601",
    "to_time_ns": "int|null: time of the last position, epoch nanoseconds",
    "topic": "str: topic",
    "type": "str: type",
    "type_id": "int: type id of the counter",
    "updated": "int: last change, epoch milliseconds",
    "updated_ms": "int: last change, epoch milliseconds",
    "url": "str: URL of the service",
    "user": "str: user name",
    "value": "int: value",
    "version": "str: version",
    "warnings": "[str]: warnings",
    "what": "str: what was measured",
    "why": "str: the reason",
    "write_quorum": "int: write quorum",
}
"""Type and meaning of each field."""
