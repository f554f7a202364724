"""Logistic regression with a quadratic penalty, by Newton's method: few examples, any number of features.

Everything goes through the Gram matrix of the examples, so forty texts with a hundred thousand terms are a system of
forty unknowns.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_STEPS = 50
_TOLERANCE = 1e-9
_RANK = 1e-10
_FREE = 1e-9
"""Penalty of the bias: none to speak of, but the curvature stays invertible where all examples are far apart."""


class Fit(NamedTuple):
    """f(x) = Σᵢ αᵢ ⟨xᵢ, x⟩ + b over the examples xᵢ; σ(f) is the probability of a positive example."""

    weights: Floats
    bias: float

    def decide(self, inner: Floats) -> Floats:
        """Log-odds f of texts given by their inner products with the examples, one row each."""
        decisions: Floats = inner @ self.weights + self.bias
        return decisions


def fit(gram: Floats, positive: npt.NDArray[np.bool_], penalty: float) -> Fit:
    """Minimise Σ log(1 + exp(∓f)) + penalty/2 ‖w‖²; the bias is free.

    Args:
        gram: Inner products of the examples.
        positive: Which of them are positive; both kinds must be there.
        penalty: Larger draws all probabilities nearer to the share of positive examples.

    Example:
        >>> found = fit(np.eye(2), np.array([True, False]), penalty=1.0)
        >>> (found.decide(np.eye(2)) > 0).tolist(), abs(found.bias) < 1e-9
        ([True, False], True)
    """
    if positive.all() or not positive.any():
        raise ValueError(f"all {len(positive)} examples are of one kind")
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK * max(float(values.max()), 1e-300)
    spread = np.sqrt(values[kept])
    features = np.column_stack([vectors[:, kept] * spread, np.ones(len(positive))])
    ridge = np.append(np.full(int(kept.sum()), penalty), _FREE)
    solution = minimise(features, positive.astype(np.float64), ridge)
    return Fit(vectors[:, kept] @ (solution[:-1] / spread), float(solution[-1]))


def sigmoid(decisions: Floats) -> Floats:
    """Probabilities from log-odds, without overflow.

    Example:
        >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    shares: Floats = 0.5 * (1 + np.tanh(decisions / 2))
    return shares


def minimise(features: Floats, labels: Floats, ridge: Floats) -> Floats:
    """The weights of the columns: Newton's method, each column with its own penalty.

    Example:
        >>> minimise(np.array([[1.0], [-1.0]]), np.array([1.0, 0.0]), ridge=np.array([1.0])).round(3).tolist()
        [0.675]
    """
    solution = np.zeros(features.shape[1])
    loss = _loss(features, labels, ridge, solution)
    for _ in range(_STEPS):
        shares = sigmoid(features @ solution)
        slope = features.T @ (shares - labels) + ridge * solution
        curvature = (features * (shares * (1 - shares))[:, None]).T @ features + np.diag(ridge)
        step = np.asarray(np.linalg.solve(curvature, slope), dtype=np.float64)
        solution, loss, gained = _descend(features, labels, ridge, solution, step, loss)
        if gained < _TOLERANCE:
            break
    return solution


def _descend(
    features: Floats, labels: Floats, ridge: Floats, solution: Floats, step: Floats, loss: float
) -> tuple[Floats, float, float]:
    """Go along the step, halved until the loss falls: a full step can overshoot far from the minimum."""
    for halvings in range(30):
        trial = solution - step / 2**halvings
        found = _loss(features, labels, ridge, trial)
        if found <= loss:
            return trial, found, loss - found
    return solution, loss, 0.0


def _loss(features: Floats, labels: Floats, ridge: Floats, solution: Floats) -> float:
    decisions = features @ solution
    return float(np.logaddexp(0, decisions).sum() - labels @ decisions + (ridge * solution**2).sum() / 2)
