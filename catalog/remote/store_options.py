"""Storage options and credentials of object stores, for obstore and for delta-rs.

Both use the Rust crate `object_store`, as Polars does, and options have its names; a few common
names of pyarrow's options are translated. Credentials that the crate does not find are found by
boto3 (the files in ``~/.aws``), google-auth and azure-identity, where these are installed.
"""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from aerotape.catalog.location import StorageOptions
from aerotape.errors import ConfigurationError

S3: Final = ("s3", "s3a", "s3n")
_GCS: Final = ("gs", "gcs")
_AZURE: Final = ("az", "abfs", "abfss")
OBJECT_STORES: Final = (*S3, *_GCS, *_AZURE)
"""Schemes of URLs of object stores."""

_PREFIX: Final = re.compile("^(aws_|google_|azure_storage_|azure_)")
_NAMES: Final = {
    "access_key": "access_key_id",
    "secret_key": "secret_access_key",
    "default_region": "region",
    "endpoint_override": "endpoint",
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
    "request_timeout": "timeout",
    "anonymous": "skip_signature",
}
"""Common names of pyarrow's and other options, and those of obstore."""
_OTHERS: Final = {
    "blob_storage_authority": "endpoint",
    "blob_storage_scheme": "endpoint",
    "dfs_storage_authority": "endpoint",
    "dfs_storage_scheme": "endpoint",
    "force_virtual_addressing": "virtual_hosted_style_request",
    "retry_time_limit": "max_retries",
}
"""Names of pyarrow's options, and what to give instead."""
_PLACES: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_PROFILES: Final = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}
_CREDENTIALS: Final = re.compile("key|sas|token|secret|skip|client|cli$|credential|emulator")
_GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_RETRIES: Final = 5


def translate(options: StorageOptions) -> dict[str, str]:
    """Return options by the names of `object_store`, without prefixes such as ``aws_``.

    Times may be numbers of seconds. Servers without TLS are allowed, since endpoints name them.

    Raises:
        ConfigurationError: an option is given by two names, or is one of pyarrow only.
    """
    given = dict(options.items)
    scheme = given.pop("scheme", "https")
    config: dict[str, str] = {}
    for option, value in given.items():
        name = _PREFIX.sub("", option.lower())
        name = _NAMES.get(name, name)
        if name in _OTHERS:
            raise ConfigurationError(f"storage.{option}: give storage.{_OTHERS[name]} instead")
        if name in config:
            raise ConfigurationError(f"storage.{option}: {name} is given by another name, too")
        if name.endswith("timeout"):
            with suppress(ValueError):
                value = f"{float(value) * 1000:.0f}ms"
        elif name == "endpoint" and "://" not in value:
            value = f"{scheme}://{value}"
        config[name] = value
    return {"allow_http": "true", **config}


def s3_settings(bucket: str, options: StorageOptions) -> tuple[dict[str, str], Any]:
    """Return the options of a bucket, and what obstore calls for credentials, if anything.

    Where neither server nor region are known, AWS is asked for the region.

    Raises:
        ConfigurationError: an option is wrong, or a profile cannot be read.
    """
    config = translate(options)
    if "role_arn" in config and not _has_token_file(config):
        raise ConfigurationError(
            "storage.role_arn: is assumed with a web identity token; to assume it otherwise, name "
            "it in a profile in ~/.aws/config and set AWS_PROFILE",
            "storage.role_arn",
        )
    provider: Any = None
    if {"access_key_id", "secret_access_key"} <= config.keys():
        # obstore would add a session token from the environment, which belongs to other keys.
        keys = {
            "access_key_id": config["access_key_id"],
            "secret_access_key": config["secret_access_key"],
            "token": config.get("session_token"),
            "expires_at": None,
        }
        provider = keys.copy
    elif "skip_signature" not in config and _profiles():
        provider = _read_profile(config)
    elif "skip_signature" not in config and os.environ.get("AWS_ACCESS_KEY_ID"):
        _read_place(config)
    is_known = any(map(os.environ.get, (*_PLACES, *_REGIONS)))
    if not is_known and not {"endpoint", "region"} & config.keys():
        config |= _region_of(bucket)
    return config, provider


def delta_options(bucket: str, options: StorageOptions) -> dict[str, str]:
    """Return the options of a bucket for delta-rs, which finds credentials by itself.

    Raises:
        ConfigurationError: as of `s3_settings`; or the environment has a part of other credentials.
    """
    config, _ = s3_settings(bucket, options)
    if "access_key_id" in config:
        if "AWS_SESSION_TOKEN" in os.environ and "session_token" not in config:
            raise ConfigurationError(
                "storage.access_key_id: delta-rs would add AWS_SESSION_TOKEN of the environment, "
                "which belongs to other keys: unset it, or give storage.session_token",
                "storage.access_key_id",
            )
    elif _profiles():
        config["aws_force_credential_load"] = "true"  # not for the servers of AWS only
    return config


def _has_token_file(config: dict[str, str]) -> bool:
    return "web_identity_token_file" in config or "AWS_WEB_IDENTITY_TOKEN_FILE" in os.environ


def _profiles() -> bool:
    """Return whether AWS has profiles here, and the environment no keys, which come first."""
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return False
    return "AWS_PROFILE" in os.environ or _has_files()


def _has_files() -> bool:
    files = (os.environ.get(name, default) for name, default in _PROFILES.items())
    return any(Path(each).expanduser().exists() for each in files)


def _read_place(config: dict[str, str]) -> None:
    """Add server and region of the profile to the options, for keys of the environment.

    As AWS's own tools do; without boto3 only the environment has them.
    """
    is_known = "endpoint" in config or any(map(os.environ.get, _PLACES))
    if is_known or not _has_files() or find_spec("boto3") is None:
        return
    import boto3

    session = boto3.Session()
    _add_endpoint(config, session)
    if session.region_name and not any(map(os.environ.get, _REGIONS)):
        config.setdefault("region", session.region_name)


def _add_endpoint(config: dict[str, str], session: Any) -> None:
    endpoint = session.client("s3").meta.endpoint_url
    if ".amazonaws.com" not in endpoint:
        config.setdefault("endpoint", endpoint)


def _read_profile(config: dict[str, str]) -> Any:
    """Return the credentials of the profile, and add its server to the options."""
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        if "AWS_PROFILE" not in os.environ:
            return None
        raise ConfigurationError(
            "AWS_PROFILE: the package boto3 reads profiles: `pip install boto3`", "AWS_PROFILE"
        ) from error
    session = boto3.Session()
    _add_endpoint(config, session)
    if session.get_credentials() is None:
        return None
    # boto3 renews credentials at the latest ten minutes before they expire.
    return Boto3CredentialProvider(session, ttl=timedelta(minutes=10))


def advice_on_profiles(scheme: str) -> str:
    """Return what to do about profiles of AWS that are not read; empty if they are."""
    if scheme not in S3 or find_spec("boto3") or not _profiles():
        return ""
    return "; profiles of ~/.aws are read by the package boto3, which is not installed"


def _region_of(bucket: str) -> dict[str, str]:
    """Ask AWS for the region of a bucket, and return it as an option."""
    request = urllib.request.Request(f"https://s3.amazonaws.com/{bucket}", method="HEAD")
    try:
        headers = urllib.request.urlopen(request, timeout=5).headers
    except urllib.error.HTTPError as error:  # most buckets are not public
        headers = error.headers
    except OSError:
        return {}  # the first request to the bucket reports it better
    region = headers["x-amz-bucket-region"]
    return {"region": region} if region else {}


def make_store(scheme: str, authority: str, options: StorageOptions) -> Any:
    """Return obstore's store of a bucket or container.

    Raises:
        ConfigurationError: an option is wrong.
        ImportError: obstore is not installed.
        Exception: obstore does not accept an option, or a package finds no credentials.
    """
    from obstore import store

    if scheme in S3:
        config, provider = s3_settings(authority, options)
        # Not all servers can delete several objects in one request.
        config.setdefault("disable_bulk_delete", "true")
        return store.S3Store(authority, credential_provider=provider, **_arguments(config))
    config = translate(options)
    if scheme in _GCS:
        if "endpoint" in config:
            config["base_url"] = config.pop("endpoint")
        arguments = _arguments(config)
        try:
            return store.GCSStore(authority, **arguments)
        except Exception as error:
            if "unknown variant" not in str(error):  # of credentials in a file
                raise
            return store.GCSStore(authority, credential_provider=_google(), **arguments)
    container, _, host = authority.partition("@")
    if host:
        config.setdefault("account_name", host.partition(".")[0])
        config.setdefault("endpoint", f"https://{host.replace('.dfs.', '.blob.', 1)}")
    variables = (name.lower() for name in os.environ if name.startswith("AZURE_STORAGE_"))
    is_given = any(map(_CREDENTIALS.search, (*config, *variables)))
    provider = None if is_given else _azure()
    return store.AzureStore(container, credential_provider=provider, **_arguments(config))


def _arguments(config: dict[str, str]) -> dict[str, Any]:
    """Return options as arguments of obstore's stores."""
    retries = int(config.pop("max_retries", _RETRIES))
    return {"config": config, "retry_config": {"max_retries": retries}}


def _google() -> Any:
    """Return the application default credentials of any kind (ConfigurationError)."""
    try:
        import google.auth
        from obstore.auth.google import GoogleCredentialProvider
    except ImportError as error:
        raise ConfigurationError(
            "the package google-auth reads this kind of application default credentials: "
            "`pip install google-auth requests`",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ) from error
    credentials, _ = google.auth.default(scopes=[_GOOGLE_SCOPE])
    return GoogleCredentialProvider(credentials)


def _azure() -> Any:
    """Return the credentials of Azure's tools and environment, None without azure-identity."""
    try:
        from obstore.auth.azure import AzureCredentialProvider
    except ImportError:
        return None
    return AzureCredentialProvider()
