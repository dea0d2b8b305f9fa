"""The fields of each command's records, of what it prints with --json.

In a list of fields, `name?` is one that may be absent and `name=type` one with another type than in
`fields`. A command prints a record, an array of them, or one on each line.
"""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    "archive": (
        "event archive_id archive_dir aeron_dir control_channel control_stream_id "
        "local_control_channel local_control_stream_id"
    ),
    "archive --http": "event url",
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
    "ledger close": "{ledger}",
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
    "parquet --dry-run": "{planned}",
    "parquet --watch": "{conversion}",
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
    "table --dry-run": "{planned}",
    "table --watch": "{conversion}",
    "tool accept-damage": "recording_id accepted copies_deleted dry_run",
    "tool capacity": "capacity_bytes dry_run?",
    "tool checksum": (
        "recording_id descriptor_changed segments frames frames_changed frames_wrong problems "
        "dry_run"
    ),
    "tool compact": (
        "recordings_removed entry_bytes capacity_bytes_before segment_files_deleted=[str] "
        "kept=[{kept_file}] dry_run"
    ),
    "tool count-entries": "entries",
    "tool delete-orphaned-segments": (
        "segment_files_deleted=[str] other_files_deleted kept=[{kept_file}] dry_run"
    ),
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
        "checksums other_checksums unchecked_frames payloads bad_places problems remarks notes "
        "marked dry_run"
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
    "conversion": (
        "recording_id? result? messages recording_bytes payload_bytes to_position?=int|null "
        "warnings? error? qualified_name? out_dir? parquet_bytes? files?"
    ),
    "converted": (
        "recording_id result messages recording_bytes payload_bytes to_position=int|null warnings "
        "error qualified_name?"
    ),
    "counter": (
        "counter_id type_id value label registration_id owner_id reference_id key archive_id? "
        "control_session_id? recording_id? session_id? bound_ns?"
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
        "recorded_position created_ms write_quorum? ack_quorum? has_password? mirrors? members? "
        "damaged_entries? repaired_entries?"
    ),
    "lengths": "from_bytes to_bytes messages payload_bytes",
    "mark_file": (
        "path active version pid archive_id start_timestamp_ms activity_timestamp_ms "
        "control_channel control_stream_id local_control_channel local_control_stream_id "
        "events_channel events_stream_id aeron_directory errors"
    ),
    "marked": (
        "state state_before stop_position stop_position_before bytes_behind reason checksum_renewed"
    ),
    "measurement": (
        "what message_bytes rounds messages_per_s mb_per_s slowest_mb_per_s fastest_mb_per_s"
    ),
    "member": "channel is_connected lag_bytes error=str",
    "message": (
        "position end_position session_id stream_id term_id term_offset flags reserved_value "
        "length payload"
    ),
    "note": "outcome detail position timestamp_ms quarantine=str accepted_timestamp_ms",
    "problem": "detail position path offset length",
    "planned": "recording_id qualified_name? action ranges recording_bytes reason=str|null",
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
