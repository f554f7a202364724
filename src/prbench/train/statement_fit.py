"""What `contrast` learns of statements: whether something is wanted, which sentences say so, and what they name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from prbench.data.passages import Passage, Saying
from prbench.models.ngrams import NGrams
from prbench.models.personal.pieces import sentences
from prbench.models.personal.statements import Attitude
from prbench.models.personal.traits import Floats
from prbench.train.regression import logistic, three_way
from prbench.train.stance_labels import Axes, Stance

_ATTITUDE_PENALTIES = (0.1, 0.03)
"""Penalties of the weights that tell a wish from its denial, by vector and by terms; chosen by files of sentences that
were left out."""
_SAYING_PENALTY = 0.1
"""Penalty of the weights that tell a sentence that says what is wanted; chosen like those."""
_SURELY = 1.0
"""Log-odds that a sentence of a post must have to count as a statement. Chosen among 0, 1 and 2 on validation, with
pairs from elsewhere in view: of validation posts one sentence in a hundred counts."""
_NAMED_PENALTY = 0.3
"""Penalty of the weights that tell the side of what a statement names; chosen by 69 statements written for that."""
_FREE = 1e-6


class StatementFit:
    """Fits of what is read of statements.

    Args:
        wishes: What people ask for outright, on whatever axis.
        sayings: Sentences in which somebody says what is wanted, or nothing of the kind.
        lines: Lines of the training split's rubrics, with the stance each states.
        posts: Posts of the training people.
        grams: The terms that are known.
        encoder: Maps texts to vectors.
    """

    def __init__(
        self,
        wishes: Sequence[Passage],
        sayings: Sequence[Saying],
        lines: Mapping[str, Stance],
        posts: Iterable[str],
        grams: NGrams,
        encoder: Any,
    ) -> None:
        self._wishes, self._sayings, self._lines, self._posts = wishes, sayings, lines, tuple(posts)
        self._grams, self._encoder = grams, encoder

    def attitude(self) -> Attitude:
        """Weights that tell what is wanted from what is not.

        Learned from wishes that are made of phrases, half of them denied, from sentences that people write, and from
        the lines of rubrics, which want what they name and weigh as much as the denied wishes do. Without any, all is
        wanted.
        """
        from scipy.sparse import csr_array, hstack

        framed = [passage for passage in self._wishes if passage.framed]
        said = [saying for saying in self._sayings if saying.wants is not None]
        denied = sum(passage.denied for passage in framed)
        if not denied:
            return Attitude.of({}, self._encoder.encode(["width"]).shape[1])
        told = {passage.text: not passage.denied for passage in framed} | {one.text: bool(one.wants) for one in said}
        texts = [*told, *self._lines]
        labels = np.array([*told.values(), *(True for _ in self._lines)], dtype=np.float64)
        weights = np.array([*(1.0 for _ in told), *(denied / len(self._lines) for _ in self._lines)])
        vectors = self._encoder.encode(texts).astype(np.float64)
        rows = hstack([csr_array(vectors), self._grams.rows(texts), np.ones((len(texts), 1))], format="csr")
        width, terms = vectors.shape[1], len(self._grams.vocabulary)
        penalty = np.repeat([*_ATTITUDE_PENALTIES, _FREE], [width, terms, 1])
        found = logistic(rows, labels, weights, penalty)
        return Attitude(found[:width], found[width:-1], float(found[-1]))

    def saying(self) -> Floats:
        """Weights of a sentence's terms, and their start, that tell whether it says what is wanted or what is not.

        The sentences of the training people's posts count as saying neither: people show what they want more often
        than they say it, and what is taken for said by mistake costs more than what is missed.
        """
        from scipy.sparse import hstack

        if not self._sayings:
            return np.zeros(0)
        posts = sorted({sentence for text in self._posts for sentence in sentences(text)})
        texts = [*(saying.text for saying in self._sayings), *posts]
        labels = np.array([*(saying.wants is not None for saying in self._sayings), *(False for _ in posts)])
        weights = np.repeat([1.0, len(self._sayings) / len(posts)], [len(self._sayings), len(posts)])
        rows = hstack([self._grams.rows(texts), np.ones((len(texts), 1))], format="csr")
        penalty = np.append(np.full(len(self._grams.vocabulary), _SAYING_PENALTY), _FREE)
        found = logistic(rows, labels.astype(np.float64), weights, penalty)
        found[-1] -= _SURELY
        return found

    def named(self, axes: Axes, attitude: Attitude) -> Floats:
        """Weights of a statement's vector, and their start, for the sides of what it names, wanted or not.

        A plain vector knows paraphrases of a phrase better than terms do, but that of a denial is near that of the
        wish. So what a denied wish names is learned, not what it asks for; where a wish is not made of a phrase, its
        attitude says which of the two it is, as it will be read.
        """
        index = {axis: place for place, axis in enumerate(axes.poles)}
        wishes = [passage for passage in self._wishes if passage.axis in index]
        texts = [*(wish.text for wish in wishes), *self._lines]
        vectors = self._encoder.encode(texts or ["width"])[: len(texts)].astype(np.float64)
        against = attitude.willing(vectors, self._grams.rows(texts)) < 0
        stances = [axes.stance(wish.axis, wish.pole) for wish in wishes]
        turned = [wish.denied if wish.framed else bool(other) for wish, other in zip(wishes, against, strict=False)]
        labels = np.zeros((len(texts), len(index), 3))
        labels[:, :, 1] = 1.0
        for place, stance in enumerate((*stances, *self._lines.values())):
            side = -stance.side if place < len(turned) and turned[place] else stance.side
            labels[place, index[stance.axis]] = np.eye(3)[1 + side]
        return three_way(vectors, labels, _NAMED_PENALTY)
