"""Directories of raft journals as Zeebe writes them: read, verified, written.

`directory` opens a journal for reading, `broker` finds those in a broker's data directory,
`metadata` reads what a broker stores beside a journal, `verify` checks all of a journal, `writer`
writes one, `replicated` appends to one what the leader of another sends. Only these two change
files: a reader never repairs what it reads. The bytes of records and descriptors are described in
`codecs/raft/`.
"""
