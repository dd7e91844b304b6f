"""How far annotators agree, with intervals. Pure: numpy and krippendorff, no Django, no models.

`docs/agreement.md` says what each number means and where its formula comes from.
"""

from annotation.agreement.estimates import (
    LEVEL,
    REPLICATES,
    SEED,
    Agreement,
    Estimate,
    Measure,
    Reason,
    agreement,
)
from annotation.agreement.pairs import PairAgreement, pair_agreement
from annotation.agreement.segments import Difference, PairOfStrata, segment_difference

__all__ = [
    "LEVEL",
    "REPLICATES",
    "SEED",
    "Agreement",
    "Difference",
    "Estimate",
    "Measure",
    "PairAgreement",
    "PairOfStrata",
    "Reason",
    "agreement",
    "pair_agreement",
    "segment_difference",
]
