"""Authenticators and authorisation services by their name in a property.

A name is ``package.module:factory``; the factory takes no arguments and returns the object. The
Java archive's own defaults may stay in a properties file: they mean here what they mean there. Any
other Java class stops the start, for what it would refuse must not be allowed instead.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, cast

from aerotape.archive.security.authentication import AllowAll, Authenticator
from aerotape.archive.security.authorisation import (
    AllowAllActions,
    AuthorisationService,
    DenyAllActions,
)
from aerotape.errors import ConfigurationError

AUTHENTICATOR_PROPERTY = "aeron.archive.authenticator.supplier"
AUTHORISATION_PROPERTY = "aeron.archive.authorisation.service.supplier"

DEFAULT_AUTHENTICATOR = "io.aeron.security.DefaultAuthenticatorSupplier"
_AUTHENTICATOR_METHODS = (
    "on_connect_request",
    "on_challenge_response",
    "on_connected_session",
    "on_challenged_session",
)
_AUTHORISATION_METHODS = ("is_authorised",)


def load_authenticator(name: str) -> Authenticator:
    """Return the authenticator that the property names.

    Raises:
        ConfigurationError: there is none of that name, or it is not one.
    """
    if name == DEFAULT_AUTHENTICATOR:
        return AllowAll()
    made = _make(AUTHENTICATOR_PROPERTY, name)
    return check_authenticator(made, f"{AUTHENTICATOR_PROPERTY}={name}")


def load_authorisation_service(name: str) -> AuthorisationService:
    """Return the authorisation service that the property names; an empty name allows all.

    Raises:
        ConfigurationError: there is none of that name, or it is not one.
    """
    if name in ("", "ALLOW_ALL"):
        return AllowAllActions()
    if name == "DENY_ALL":
        return DenyAllActions()
    made = _make(AUTHORISATION_PROPERTY, name)
    return check_authorisation_service(made, f"{AUTHORISATION_PROPERTY}={name}")


def check_authenticator(made: object, what: str) -> Authenticator:
    """Return `made` when it has an authenticator's methods; ConfigurationError when not."""
    _check_methods(made, _AUTHENTICATOR_METHODS, what, "an authenticator")
    return cast(Authenticator, made)


def check_authorisation_service(made: object, what: str) -> AuthorisationService:
    """Return `made` when it has an authorisation service's method; ConfigurationError if not."""
    _check_methods(made, _AUTHORISATION_METHODS, what, "an authorisation service")
    return cast(AuthorisationService, made)


def _check_methods(made: object, methods: tuple[str, ...], what: str, kind: str) -> None:
    import inspect

    for name in methods:
        method = getattr(made, name, None)
        if not callable(method):
            raise ConfigurationError(
                f"{what}: {type(made).__name__} is not {kind}: it has no method {name}",
                what.partition("=")[0],
            )
        if inspect.iscoroutinefunction(method):
            raise ConfigurationError(
                f"{what}: {name} is asynchronous; it is called from a thread and must answer"
                " at once",
                what.partition("=")[0],
            )


def _make(property_name: str, name: str) -> Any:
    module_name, colon, factory_name = name.partition(":")
    if not (colon and module_name and factory_name):
        raise ConfigurationError(
            f"{property_name}={name}: Java classes cannot be loaded, and none is left out silently:"
            " give a Python factory as package.module:factory",
            property_name,
        )
    try:
        factory: Any = importlib.import_module(module_name)
        for attribute in factory_name.split("."):
            factory = getattr(factory, attribute)
    except AttributeError:
        raise ConfigurationError(
            f"{property_name}={name}: module {module_name} has no {factory_name}", property_name
        ) from None
    except Exception as error:
        raise ConfigurationError(
            f"{property_name}={name}: cannot import {module_name}:"
            f" {type(error).__name__}: {error} (is it installed, or on PYTHONPATH?)",
            property_name,
        ) from error
    try:
        return cast(Callable[[], Any], factory)()
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{property_name}={name}: the factory failed: {type(error).__name__}: {error}",
            property_name,
        ) from error
