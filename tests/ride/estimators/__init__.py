"""Tests of the estimators."""

from __future__ import annotations

from soliton.ride import estimators
from soliton.ride.estimators import CodeKind, Estimate, estimator
from soliton.ride.script import Script


def estimate(
    script: Script,
    version: int,
    *,
    fix_overflow: bool = True,
    let_fixes: bool = False,
    old_verifier: bool = False,
    kind: CodeKind = CodeKind.EXPRESSION,
) -> Estimate:
    """Estimate a script with the estimator of a version."""
    by = estimator(version, fix_overflow=fix_overflow, let_fixes=let_fixes)
    return estimators.estimate(by, script, old_verifier=old_verifier, kind=kind)
