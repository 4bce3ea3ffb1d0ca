"""Every fault is caught by the rule that is meant for it, and no permitted variant is called a failure."""

from __future__ import annotations

from functools import cache

from rho_conformance.judge.kill import Matrix, kill_matrix


@cache
def killed() -> Matrix:
    return kill_matrix()


def test_every_mutant_is_killed_by_the_rule_it_is_meant_for() -> None:
    assert [(k.mutant, k.intended) for k in killed().kills if not k.killed] == []
    assert killed().score == 1.0


def test_no_permitted_variant_is_called_a_failure() -> None:
    assert len(killed().benign) > 30
    assert {name: fails for name, fails in killed().benign.items() if fails} == {}
