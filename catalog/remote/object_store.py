"""S3 through Rust's `object_store`, the crate in obstore and delta-rs, and its options.

Arrow's S3FileSystem requests the length of each file that it opens: for many small recordings that
is half of all requests. obstore reads bytes without that. It does not know the files in ``~/.aws``
and finds no region by itself, so it is used where credentials and server are given explicitly, as
options or in the environment, and Arrow in other cases.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Final

from aerotape.catalog.location import StorageOptions
from aerotape.errors import ConfigurationError

_OPTIONS: Final = {
    "access_key": "AWS_ACCESS_KEY_ID",
    "secret_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
    "region": "AWS_REGION",
}
_TIMEOUTS: Final = {"connect_timeout": "connect_timeout", "request_timeout": "timeout"}
KNOWN_OPTIONS: Final = ("endpoint_override", "scheme", *_OPTIONS, *_TIMEOUTS)
"""Storage options that `translate_options` accepts."""
_PLACES: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
_RETRIES: Final = 3


def translate_options(options: StorageOptions) -> dict[str, str]:
    """Translate storage options into those of `object_store`.

    Raises:
        ConfigurationError: an option is not one of `KNOWN_OPTIONS`, or a time is not a number.
    """
    given = dict(options.items)
    scheme = given.pop("scheme", "https")
    translated: dict[str, str] = {}
    endpoint = given.pop("endpoint_override", None)
    if endpoint is not None:
        if "://" not in endpoint:
            endpoint = f"{scheme}://{endpoint}"
        translated["AWS_ENDPOINT_URL"] = endpoint
        if endpoint.startswith("http://"):
            translated["AWS_ALLOW_HTTP"] = "true"
    for name, value in given.items():
        if name in _OPTIONS:
            translated[_OPTIONS[name]] = value
        elif name not in _TIMEOUTS:
            raise ConfigurationError(
                f"storage option {name} is not available for Delta tables: expected "
                f"{', '.join(KNOWN_OPTIONS)}; set the environment for others",
                name,
            )
        else:
            try:
                translated[_TIMEOUTS[name]] = f"{float(value) * 1000:.0f}ms"
            except ValueError:
                raise ConfigurationError(
                    f"storage.{name}: {value!r} is not a number", name
                ) from None
    return translated


class S3Object:
    """An object, with the methods of pyarrow's files. Nothing is requested before it is read."""

    def __init__(self, store: Any, key: str) -> None:
        self._store = store
        self._key = key

    def size(self) -> int:
        """Request its length, bytes."""
        import obstore

        return int(obstore.head(self._store, self._key)["size"])

    def read_at(self, length: int, offset: int) -> bytes:
        """Read a range; fewer bytes at the end (FileNotFoundError, and errors of obstore)."""
        import obstore

        try:
            return bytes(obstore.get_range(self._store, self._key, start=offset, length=length))
        except obstore.exceptions.GenericError:
            # A server refuses a range that begins at the end or after it.
            if offset >= self.size():
                return b""
            raise

    def read(self) -> bytes:
        """Read all of it (FileNotFoundError, and errors of obstore)."""
        import obstore

        return bytes(obstore.get(self._store, self._key).bytes())

    def close(self) -> None:
        """Nothing is open: each read is a request."""


_used_by: list[int] = []


def object_store(
    bucket: str, options: StorageOptions, environment: tuple[tuple[str, str], ...]
) -> Any:
    """Return obstore's store for a bucket of S3; None where Arrow must read it.

    Args:
        bucket: name of the bucket.
        options: storage options.
        environment: the variables about AWS, by which the result may differ.
    """
    # A process that is forked does not have the threads of obstore.
    if _used_by and _used_by[0] != os.getpid():
        return None
    store = _store(bucket, options, environment)
    if store is not None and not _used_by:
        _used_by.append(os.getpid())
    return store


@lru_cache(maxsize=32)
def _store(bucket: str, options: StorageOptions, environment: tuple[tuple[str, str], ...]) -> Any:
    try:
        from obstore.store import S3Store

        given: Any = translate_options(options)
    except (ImportError, ConfigurationError):
        return None
    variables = dict(environment)
    client: Any = {name: given.pop(name) for name in _TIMEOUTS.values() if name in given}
    found = variables | given
    # Variables with a part of other credentials would be added to those of the options.
    is_mixed = "AWS_ACCESS_KEY_ID" in given and "AWS_SESSION_TOKEN" in set(variables) - set(given)
    if is_mixed or not found.get("AWS_ACCESS_KEY_ID") or not any(map(found.get, _PLACES)):
        return None
    given.pop("AWS_ALLOW_HTTP", None)
    client["allow_http"] = True
    return S3Store(
        bucket, config=given, client_options=client, retry_config={"max_retries": _RETRIES}
    )
