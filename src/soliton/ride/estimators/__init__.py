"""Estimators: how complex a script can get, before it is ever run.

``estimate`` is the way in; ``choice`` has the rules of the chain: which estimator holds when, and
which limits.
"""

from soliton.ride.estimators.library import Place
from soliton.ride.estimators.machine import EstimationError, EstimationTooLong
from soliton.ride.estimators.scripts import (
    Estimate,
    Estimator,
    FullEstimate,
    estimate,
    estimate_by,
    estimate_compiled,
    estimate_fully,
    estimator,
)

__all__ = [
    "Estimate",
    "EstimationError",
    "EstimationTooLong",
    "Estimator",
    "FullEstimate",
    "Place",
    "estimate",
    "estimate_by",
    "estimate_compiled",
    "estimate_fully",
    "estimator",
]
