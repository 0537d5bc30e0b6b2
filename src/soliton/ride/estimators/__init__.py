"""Estimators: the maximal complexity of a script, calculated without running it.

``estimate`` is the entry point. ``choice`` has the rules of the chain: the estimator at each
height, and the limits.
"""

from soliton.ride.estimators.library import CodeKind
from soliton.ride.estimators.machine import EstimationError, EstimationTooLong
from soliton.ride.estimators.scripts import (
    Estimate,
    Estimator,
    FullEstimate,
    estimate,
    estimate_compiled,
    estimator,
)

__all__ = [
    "CodeKind",
    "Estimate",
    "EstimationError",
    "EstimationTooLong",
    "Estimator",
    "FullEstimate",
    "estimate",
    "estimate_compiled",
    "estimator",
]
