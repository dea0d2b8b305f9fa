"""The journal of a raft log as Zeebe writes it: records, raft entries, segment descriptors.

`record` has the records of the journal, `entries` the raft entries in them, `application` the
engine's records in these, with their names in `intents`; `descriptor` has the head of segment
files; `formats` lists what the releases write. The layout of each message of journal and raft log
is in `codecs/schemas/`; what surrounds the messages is here and, for scans of whole files, in
`native/format/src/raft_journal/`.
"""
