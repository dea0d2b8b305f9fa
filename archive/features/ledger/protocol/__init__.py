"""The protocol of the archives that store one ledger: its state and its rules, without I/O.

Nothing here waits, reads a clock or a file, or sends anything: objects receive what has happened,
and return what to do next. docs/ledger-protocol.md has the protocol. The archives of a ledger are
its members, each named by its control channel. Positions are bytes of the ledger's recording, the
same in all members.

    member_record  what a member stores, what it replies, and how both change
    logs           where two logs part, which of them wins, and what may be cut
    quorums        how many members decide, and what they have in common
    election       how a member becomes the leader: replies in, the next step out
    leadership     what a leader knows of its members, and what is confirmed
"""
