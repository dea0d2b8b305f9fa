"""The requests of each role, with those of features."""

from __future__ import annotations

from aerotape.archive.features.built_in import FEATURES
from aerotape.archive.security.permissions import Permissions
from aerotape.archive.security.users_file import Role
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import ledger_control

_OURS = {
    message.__name__: message.TEMPLATE_ID
    for message in ledger_control.MESSAGES.values()
    if "Request" in message.__name__
}


def allowed(permissions: Permissions, role: Role) -> set[str]:
    """Return the requests of our schema that a role may send."""
    schema_id = ledger_control.SCHEMA_ID
    return {name for name, number in _OURS.items() if permissions.allow(role, number, schema_id)}


def test_requests_of_features_are_those_of_their_roles() -> None:
    """A reader creates nothing, a recorder deletes nothing, a mirror does neither."""
    permissions = Permissions(FEATURES)
    read, record, mirror = (
        allowed(permissions, role) for role in (Role.READ, Role.RECORD, Role.MIRROR)
    )
    assert read < record < allowed(permissions, Role.ADMIN) == set(_OURS)
    changes = ("Create", "Writer", "Sync", "Close", "Recover", "Delete", "Mirror")
    assert not [name for name in read for each in changes if each in name]
    assert not [name for name in record for each in ("Delete", "Mirror") if each in name]
    assert mirror == {
        "MirrorLedgerRequest",
        "AwaitLedgerRequest",
        "SyncLedgerRequest",
        "CloseLedgerRequest",
    }
    assert permissions.allow(Role.MIRROR, codecs.ReplayRequest.TEMPLATE_ID)
    assert not permissions.allow(Role.MIRROR, codecs.ListRecordingsRequest.TEMPLATE_ID)


def test_without_features_no_role_has_their_requests() -> None:
    """Nor has the role of mirrors more than a session needs."""
    permissions = Permissions()
    assert not any(allowed(permissions, role) for role in Role)
    assert permissions.allow(Role.MIRROR, codecs.KeepAliveRequest.TEMPLATE_ID)
    assert not permissions.allow(Role.MIRROR, codecs.ReplayRequest.TEMPLATE_ID)
