"""Point fits: plain maximum likelihood, regularised only where there is no finite maximum."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgWarning

from arena.ratings.counts import Counts
from arena.ratings.graph import Connectivity, Note, connectivity, describe, one_way, pick
from arena.ratings.model import Shape, maximise
from arena.ratings.votes import FloatArray


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model of K contestants.

    `strength` (K,): log strengths, natural logarithm, centred at 0 within each group of connected
    contestants; NaN without votes. `log_nu`: log of Davidson's ν, None where no tie parameter was
    fitted. `side`: advantage of the left position in the same units, None where not fitted.
    `virtual` (K, K): virtual wins added to either side, all zero unless regularised.
    `notes`: what has to be said about the fit.
    """

    strength: FloatArray
    log_nu: float | None
    side: float | None
    graph: Connectivity
    virtual: FloatArray
    notes: tuple[Note, ...]

    @property
    def nu(self) -> float | None:
        """Davidson's ν: P(tie)/sqrt(P(left) P(right)); None where not fitted."""
        return None if self.log_nu is None else float(np.exp(self.log_nu))

    @property
    def shape(self) -> Shape:
        return Shape(
            contestants=len(self.strength),
            ties=self.log_nu is not None,
            side=self.side is not None,
        )

    @property
    def params(self) -> FloatArray:
        """(P,) the parameter vector of `arena.ratings.model`, with 0 for unrated contestants."""
        extra = [x for x in (self.log_nu, self.side) if x is not None]
        return np.concatenate([np.nan_to_num(self.strength), extra])


def fit_bradley_terry(counts: Counts, names: Sequence[str] | None = None) -> Fit:
    """Bradley–Terry strengths; a tie is half a win for each.

    `counts` (K, K); `names` (K,) are used in the notes. Never raises on degenerate data: what
    cannot be estimated is NaN or regularised, and `notes` says which.
    """
    names = _names(counts, names)
    graph = connectivity(counts.wins)
    strength = np.full(len(names), np.nan)
    virtual = virtual_ties(graph)
    augmented = counts.add(virtual)
    for group in range(graph.groups):
        members = graph.members(group)
        strength[members] = _fit_group(augmented.take(members))
    return Fit(strength, None, None, graph, virtual, describe(graph, names))


def fit_davidson(counts: Counts, names: Sequence[str] | None = None) -> Fit:
    """Davidson strengths and ν, fitted together; one ν for the whole axis.

    Without ties ν is 0 and the fit is Bradley–Terry; with nothing but ties ν is infinite and all
    strengths are equal. Both are said in the notes, with `log_nu` None. Where no chain of wins
    leads back to its beginning, the fit is regularised like a one-way graph.
    """
    start = fit_bradley_terry(counts, names)
    total, ties = float(counts.total.sum()), float(counts.tie.sum())
    if total == 0:
        return start
    if ties in (0.0, total):
        return _with_note(start, _tie_note(ties > 0))
    if one_way(counts.left + counts.right.T):
        start = _regularise(start, _names(counts, names))
    shape = Shape(contestants=len(start.strength), ties=True)
    log_nu = np.log(2.0 * ties / (total - ties))
    return _polish(counts, start, np.append(np.nan_to_num(start.strength), log_nu), shape)


def fit_with_side(counts: Counts, names: Sequence[str] | None = None, *, ties: bool = False) -> Fit:
    """Either model with an advantage of the left position, fitted together."""
    start = fit_davidson(counts, names) if ties else fit_bradley_terry(counts, names)
    if not counts.total.any():
        return start
    shape = Shape(contestants=len(start.strength), ties=start.log_nu is not None, side=True)
    return _polish(counts, start, np.append(start.params, 0.0), shape)


def _regularise(fit: Fit, names: Sequence[str]) -> Fit:
    """The fit with virtual ties in every group, and what to say of it."""
    weak = replace(fit.graph, strong=np.zeros_like(fit.graph.strong))
    virtual = virtual_ties(weak)
    text = (
        "No chain of wins leads back to its beginning, so maximum likelihood with a tie parameter "
        "has no finite answer. The fit was regularised: every contestant was given one virtual "
        "tie, spread evenly over the others."
    )
    notes = [note for note in fit.notes if note.code != "regularised"]
    notes.append(Note("regularised", text, pick(names, fit.graph.rated)))
    return replace(fit, virtual=virtual, notes=tuple(notes))


def virtual_ties(graph: Connectivity) -> FloatArray:
    """(K, K) virtual wins to either side that make every group strongly connected.

    Zero where the graph is fine. Otherwise each member of the group gets one virtual tie in
    total, spread over the other members: 1/(n − 1) of a vote per pair, that is 1/(4(n − 1)) for
    each side of each of the two directed cells.
    """
    k = len(graph.component)
    virtual = np.zeros((k, k))
    for group in np.flatnonzero(~graph.strong):
        members = graph.members(int(group))
        virtual[np.ix_(members, members)] = 0.25 / (len(members) - 1)
    np.fill_diagonal(virtual, 0.0)
    return virtual


def _fit_group(counts: Counts) -> FloatArray:
    """(n,) choix's spectral fit of a strongly connected group, polished by Newton's method."""
    import choix  # brings scipy.stats: half a second that other processes need not spend

    wins = counts.wins
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            start = choix.ilsr_pairwise_dense(wins)
    except (RuntimeError, ValueError, np.linalg.LinAlgError, LinAlgWarning):
        start = np.zeros(len(wins))  # very uneven counts; Newton alone gets there
    if not np.isfinite(start).all():
        start = np.zeros(len(wins))
    gauge = np.full(wins.shape, 1.0 / len(wins))
    return maximise(counts, start - start.mean(), Shape(len(wins)), gauge).params


def _polish(counts: Counts, fit: Fit, start: FloatArray, shape: Shape) -> Fit:
    """The fit with all parameters of `shape`, by Newton's method from `start` (P,)."""
    solution = maximise(counts.add(fit.virtual), start, shape, fit.graph.gauge)
    params, notes = solution.params, fit.notes
    if not solution.converged.all():
        notes = (*notes, Note("not_converged", "The fit did not converge to full precision."))
    return Fit(
        strength=np.where(fit.graph.rated, params[: shape.contestants], np.nan),
        log_nu=float(params[shape.contestants]) if shape.ties else None,
        side=float(params[-1]) if shape.side else None,
        graph=fit.graph,
        virtual=fit.virtual,
        notes=notes,
    )


def _names(counts: Counts, names: Sequence[str] | None) -> Sequence[str]:
    return [str(i) for i in range(len(counts.left))] if names is None else names


def _with_note(fit: Fit, note: Note) -> Fit:
    return replace(fit, notes=(*fit.notes, note))


def _tie_note(all_ties: bool) -> Note:
    if all_ties:
        return Note("only_ties", "Every vote is a tie: the contestants cannot be told apart.")
    return Note("no_ties", "There are no ties, so the tie parameter is 0 (plain Bradley–Terry).")
