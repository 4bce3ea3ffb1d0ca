"""Contracts of `rho_core.errors`: what a provider's failure becomes (RHO-TERM-5)."""

from __future__ import annotations

from rho_conformance.contracts.base import contract
from rho_core import errors
from rho_core.errors import Error, ProviderError


@contract(errors.from_provider, bounds="texts of at most 2 characters")
def a_final_failure_says_what_the_provider_said(message: str, retryable: bool, hint: int | None) -> Error:
    """
    pre: len(message) <= 2
    post: __return__.message == "provider failed: " + message and __return__.retryable == retryable
    post: (__return__.name, __return__.provider_kind, __return__.diagnostic) == ("Provider", "Timeout", "secret")
    """
    return errors.from_provider(ProviderError("Timeout", message, retryable, hint, "secret"))


@contract(errors.invalid_response, bounds="texts of at most 2 characters")
def a_malformed_response_is_never_retryable(issue: str) -> Error:
    """
    pre: len(issue) <= 2
    post: not __return__.retryable and __return__.provider_kind == "InvalidResponse" and issue in __return__.message
    """
    return errors.invalid_response(issue)
