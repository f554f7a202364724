"""Penalised regressions by L-BFGS: logistic, and softmax over a text's sides of each axis."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prbench.models.personal.traits import Floats


def minimise(objective: Callable[[Floats], tuple[float, Floats]], count: int) -> Floats:
    """The place of the least value of an objective that gives its slope too, from zero."""
    from scipy.optimize import minimize

    found = minimize(objective, np.zeros(count), jac=True, method="L-BFGS-B", options={"maxiter": 150, "maxcor": 6})
    return np.asarray(found.x, dtype=np.float64)


def logistic(rows: Floats, labels: Floats, weights: Floats, penalty: Floats) -> Floats:
    """Logistic regression with a penalty for each column."""

    def objective(flat: Floats) -> tuple[float, Floats]:
        decisions = rows @ flat
        loss = float((weights * (np.logaddexp(0, decisions) - labels * decisions)).sum())
        error = weights * (0.5 * (1 + np.tanh(decisions / 2)) - labels)
        return loss + float(penalty @ flat**2) / 2, rows.T @ error + penalty * flat

    return minimise(objective, rows.shape[1])


def three_way(rows: Any, labels_NK3: Floats, penalty: float) -> Floats:
    """Log-odds of the first and the third class against the second for each of K softmaxes, (columns + 1, K, 2)."""
    wide, (count, axes, _) = rows.shape[1], labels_NK3.shape

    def objective(flat: Floats) -> tuple[float, Floats]:
        own, bias = flat[: wide * axes * 3].reshape(wide, -1), flat[wide * axes * 3 :]
        logits = (rows @ own + bias).reshape(count, axes, 3)
        total = np.logaddexp.reduce(logits, axis=2, keepdims=True)
        error = (np.exp(logits - total) - labels_NK3).reshape(count, axes * 3)
        loss = float(total.sum() - (logits * labels_NK3).sum() + penalty / 2 * (own**2).sum())
        return loss, np.concatenate([(rows.T @ error + penalty * own).ravel(), error.sum(0)])

    flat = minimise(objective, (wide + 1) * axes * 3).reshape(wide + 1, axes, 3)
    return np.asarray(flat[:, :, [0, 2]] - flat[:, :, 1:2])


def two_sided(apart: Any, labels: Floats, penalty: float) -> tuple[Floats, Floats]:
    """A softmax over axis and side of differences: weights of margin and size, (columns, 2, K), and the bias, (K).

    Swapping what is compared swaps the sides, so each difference is shown one way round.

    Args:
        apart: The differences, one row each.
        labels: Of each, first all axes on the second side, then all on the first, (N, 2 K).
        penalty: Penalty of the squared weights.
    """
    wide, axes, sizes = apart.shape[1], labels.shape[1] // 2, abs(apart)

    def parts(flat: Floats) -> tuple[Floats, Floats, Floats]:
        size = wide * axes
        return flat[:size].reshape(wide, axes), flat[size : 2 * size].reshape(wide, axes), flat[2 * size :]

    def objective(flat: Floats) -> tuple[float, Floats]:
        own, size, bias = parts(flat)
        margin, base = apart @ own, sizes @ size + bias
        logits = np.hstack([base + margin, base - margin])
        total = np.logaddexp.reduce(logits, axis=1, keepdims=True)
        error = np.exp(logits - total) - labels
        plus, minus = error[:, :axes], error[:, axes:]
        loss = float(total.sum() - (logits * labels).sum())
        loss += penalty / 2 * float((own**2).sum() + (size**2).sum()) + penalty * float((bias**2).sum())
        slopes = (
            apart.T @ (plus - minus) + penalty * own,
            sizes.T @ (plus + minus) + penalty * size,
            (plus + minus).sum(0) + 2 * penalty * bias,
        )
        return loss, np.concatenate([slope.ravel() for slope in slopes])

    own, size, bias = parts(minimise(objective, 2 * wide * axes + axes))
    return np.stack([own, size], axis=1), bias
