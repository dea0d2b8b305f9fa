"""Authenticators and authorisation services by their name in a property.

A name is ``package.module:factory``; the factory takes no arguments and returns the object. The
names of the Java archive's defaults have the same meaning here. Any other Java class is an error,
because requests that it would refuse must not be allowed instead.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, cast

from aerotape.archive.config.property_names import DEFAULT_AUTHENTICATOR
from aerotape.archive.security.authentication import AllowAll, Authenticator
from aerotape.archive.security.authorisation import (
    AllowAllActions,
    AuthorisationService,
    DenyAllActions,
)
from aerotape.errors import ConfigurationError

AUTHENTICATOR_PROPERTY = "aeron.archive.authenticator.supplier"
AUTHORISATION_PROPERTY = "aeron.archive.authorisation.service.supplier"


def load_authenticator(name: str) -> Authenticator:
    """Return the authenticator that the property names.

    Raises:
        ConfigurationError: it cannot be loaded, or is not an authenticator.
    """
    if name == DEFAULT_AUTHENTICATOR:
        return AllowAll()
    loaded = _load(AUTHENTICATOR_PROPERTY, name)
    return check_authenticator(loaded, f"{AUTHENTICATOR_PROPERTY}={name}")


def load_authorisation_service(name: str) -> AuthorisationService:
    """Return the authorisation service that the property names; an empty name allows all.

    Raises:
        ConfigurationError: it cannot be loaded, or is not an authorisation service.
    """
    if name in ("", "ALLOW_ALL"):
        return AllowAllActions()
    if name == "DENY_ALL":
        return DenyAllActions()
    loaded = _load(AUTHORISATION_PROPERTY, name)
    return check_authorisation_service(loaded, f"{AUTHORISATION_PROPERTY}={name}")


def check_authenticator(plugin: object, what: str) -> Authenticator:
    """Return `plugin` if it has an authenticator's methods, else raise ConfigurationError."""
    _check_methods(plugin, Authenticator, what, "an authenticator")
    return cast(Authenticator, plugin)


def check_authorisation_service(plugin: object, what: str) -> AuthorisationService:
    """Return `plugin` if it has an authorisation service's method, else ConfigurationError."""
    _check_methods(plugin, AuthorisationService, what, "an authorisation service")
    return cast(AuthorisationService, plugin)


def _check_methods(plugin: object, protocol: type, what: str, kind: str) -> None:
    for name in [each for each in vars(protocol) if not each.startswith("_")]:
        method = getattr(plugin, name, None)
        if not callable(method):
            raise ConfigurationError(
                f"{what}: {type(plugin).__name__} is not {kind}: it has no method {name}",
                what.partition("=")[0],
            )
        if inspect.iscoroutinefunction(method):
            raise ConfigurationError(
                f"{what}: {name} is asynchronous: expected a function that returns without waiting",
                what.partition("=")[0],
            )


def _load(property_name: str, name: str) -> Any:
    module_name, colon, factory_name = name.partition(":")
    if not (colon and module_name and factory_name):
        raise ConfigurationError(
            f"{property_name}={name}: Java classes cannot be loaded: give a Python factory as"
            " package.module:factory",
            property_name,
        )
    try:
        factory: Any = importlib.import_module(module_name)
        for attribute in factory_name.split("."):
            factory = getattr(factory, attribute)
        return factory()
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{property_name}={name}: cannot be loaded: {type(error).__name__}: {error} (is its"
            " module installed, or on PYTHONPATH?)",
            property_name,
        ) from error
