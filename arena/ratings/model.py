"""The likelihoods: Bradley–Terry and Davidson, with an optional side effect.

For a battle with i on the left and j on the right, d = θ_i − θ_j + δ.

- Bradley–Terry (Bradley & Terry 1952): P(left) = 1/(1 + e^−d); a tie is half a win each.
- Davidson (1970): P(left), P(tie), P(right) proportional to e^(d/2), ν, e^(−d/2). Newman (2023)
  writes the same model with 2v in the place of ν.

Both score the same residual, points − expected points; they differ in the expectation and in its
slope. Everything here takes leading batch axes, so that one body of code serves the point fit,
the leave-one-out fits and the bootstrap. The parameter vector is (θ_1 … θ_K, then log ν, then δ,
where fitted).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arena.ratings.counts import Counts
from arena.ratings.votes import BoolArray, FloatArray

STEP_LIMIT = 2.0
SMALL_STEP = 0.25
TOLERANCE = 1e-10


@dataclass(frozen=True)
class Shape:
    """Which parameters a model has besides the K strengths."""

    contestants: int
    ties: bool = False
    side: bool = False

    @property
    def size(self) -> int:
        return self.contestants + self.ties + self.side


@dataclass(frozen=True, eq=False)
class Moments:
    """What the model expects of one battle, elementwise over d.

    `points`: expected points of the left one. `tie`: probability of a tie. `slope`: d points/dd.
    `tie_points`: covariance of points and tie. `tie_slope`: variance of tie.
    """

    points: FloatArray
    tie: FloatArray
    slope: FloatArray
    tie_points: FloatArray
    tie_slope: FloatArray


def difference(params: FloatArray, shape: Shape) -> FloatArray:
    """(..., K, K) the log-odds d of left i against right j."""
    theta = params[..., : shape.contestants]
    gap: FloatArray = theta[..., :, None] - theta[..., None, :]
    if shape.side:
        gap = gap + params[..., -1, None, None]
    return gap


def moments(params: FloatArray, shape: Shape) -> Moments:
    """The model's moments for every directed pair."""
    gap = difference(params, shape)
    if not shape.ties:
        points = 1.0 / (1.0 + np.exp(-gap))
        zero = np.zeros(1)
        return Moments(points, zero, points * (1.0 - points), zero, zero)
    half = np.exp(0.5 * np.clip(gap, -60.0, 60.0))
    nu = np.exp(params[..., shape.contestants, None, None])
    whole = half + 1.0 / half + nu
    lead = (half - 1.0 / half) / whole  # P(left) − P(right)
    tie = nu / whole
    slope = 0.25 * (1.0 - tie - lead * lead)
    return Moments(0.5 * (1.0 + lead), tie, slope, -0.5 * lead * tie, tie * (1.0 - tie))


def gradient(counts: Counts, mom: Moments, shape: Shape) -> FloatArray:
    """(..., P) the score vector of the log-likelihood."""
    total = counts.total
    rest = counts.points - total * mom.points
    parts = [rest.sum(-1) - rest.sum(-2)]
    if shape.ties:
        parts.append((counts.tie - total * mom.tie).sum((-1, -2))[..., None])
    if shape.side:
        parts.append(rest.sum((-1, -2))[..., None])
    return np.concatenate(parts, axis=-1)


def information(total: FloatArray, mom: Moments, shape: Shape) -> FloatArray:
    """(..., P, P) the negative Hessian, given votes per directed pair (..., K, K)."""
    k = shape.contestants
    slope = total * mom.slope
    both = slope + np.swapaxes(slope, -1, -2)
    info = np.zeros((*both.shape[:-2], shape.size, shape.size))
    info[..., :k, :k] = -both
    here = np.arange(k)
    info[..., here, here] += both.sum(-1)
    if shape.ties:
        cross = total * mom.tie_points
        info[..., :k, k] = info[..., k, :k] = cross.sum(-1) - cross.sum(-2)
        info[..., k, k] = (total * mom.tie_slope).sum((-1, -2))
        if shape.side:
            info[..., k, -1] = info[..., -1, k] = cross.sum((-1, -2))
    if shape.side:
        info[..., :k, -1] = info[..., -1, :k] = slope.sum(-1) - slope.sum(-2)
        info[..., -1, -1] = slope.sum((-1, -2))
    return info


def fix_gauge(info: FloatArray, gauge: FloatArray) -> FloatArray:
    """The information (..., P, P) made invertible along the directions that votes cannot see.

    `gauge` (K, K) projects on those directions: the mean of every connected group, and
    contestants without votes. It is added in the scale of the information's own diagonal.
    """
    k = len(gauge)
    scale = np.trace(info[..., :k, :k], axis1=-2, axis2=-1) / max(k, 1) + 1e-300
    fixed = info.copy()
    fixed[..., :k, :k] += scale[..., None, None] * gauge
    return fixed


def log_likelihood(counts: Counts, params: FloatArray, shape: Shape) -> FloatArray:
    """(...) the log-likelihood; half-ties make it a quasi-likelihood under Bradley–Terry."""
    gap = difference(params, shape)
    if not shape.ties:
        against = counts.total - counts.points
        terms = -counts.points * np.logaddexp(0, -gap) - against * np.logaddexp(0, gap)
    else:
        log_nu = params[..., shape.contestants, None, None]
        whole = np.logaddexp(np.logaddexp(0.5 * gap, -0.5 * gap), log_nu)
        lead = counts.left - counts.right
        terms = 0.5 * gap * lead + counts.tie * log_nu - counts.total * whole
    summed: FloatArray = terms.sum((-1, -2))
    return summed


@dataclass(frozen=True, eq=False)
class Solution:
    """`params` (..., P) and which batches `converged` (...) to steps below the tolerance."""

    params: FloatArray
    converged: BoolArray


def maximise(
    counts: Counts,
    start: FloatArray,
    shape: Shape,
    gauge: FloatArray,
    *,
    limit: int = 60,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Newton's method from `start` (..., P), all batches at once; `gauge` as in `fix_gauge`.

    Steps are cut to `STEP_LIMIT` and, unless small, halved where they would lower the likelihood.
    A batch whose maximum is not finite ends unconverged; nothing is raised.
    """
    params = start.copy()
    done = np.zeros(params.shape[:-1], dtype=np.bool_)
    for turn in range(1, limit + 1):
        mom = moments(params, shape)
        info = fix_gauge(information(counts.total, mom, shape), gauge)
        step = _solve(info, gradient(counts, mom, shape))
        size = np.abs(step).max(-1, initial=0.0)
        step *= np.minimum(1.0, STEP_LIMIT / np.maximum(size, 1e-300))[..., None]
        small = bool((size < SMALL_STEP).all())
        params = params + step if small else _advance(counts, params, step, shape)
        done = size < tolerance
        if done.all():
            break
        if done.any():
            rest = maximise(
                counts.pick(~done),
                params[~done],
                shape,
                gauge,
                limit=limit - turn,
                tolerance=tolerance,
            )
            params[~done] = rest.params
            done[~done] = rest.converged
            break
    theta = params[..., : shape.contestants]
    params[..., : shape.contestants] = theta - theta @ gauge
    return Solution(params, done)


def _solve(info: FloatArray, grad: FloatArray) -> FloatArray:
    try:
        step = np.linalg.solve(info, grad[..., None])[..., 0]
    except np.linalg.LinAlgError:
        step = (np.linalg.pinv(info, hermitian=True) @ grad[..., None])[..., 0]
    finite: FloatArray = np.nan_to_num(step, nan=0.0, posinf=0.0, neginf=0.0)
    return finite


def _advance(counts: Counts, params: FloatArray, step: FloatArray, shape: Shape) -> FloatArray:
    """The step, halved per batch until the likelihood does not fall by more than rounding."""
    here = log_likelihood(counts, params, shape)
    share = np.ones(np.shape(here))
    slack = 1e-9 * (1.0 + np.abs(here))
    for _ in range(20):
        ahead = params + share[..., None] * step
        there = log_likelihood(counts, ahead, shape)
        worse = there < here - slack
        if not worse.any():
            break
        share = np.where(worse, 0.5 * share, share)
    return ahead
