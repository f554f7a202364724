"""No text of a held-out pair may be trained on, however it is written."""

import pytest

from prbench.data import load_pairs
from prbench.data.passages import load_flaws, load_forms, load_passages
from prbench.errors import DataError
from prbench.train.leaks import check_apart, check_splits
from prbench.types import Pair, Post


def _pair(name: str, **changes: object) -> Pair:
    given = {
        "id": name,
        "user": name,
        "question": f"What of {name}?",
        "profile": (Post(id="1", text=f"I wrote {name}."),),
        "chosen": f"Yes, {name}.",
        "rejected": f"No, {name}.",
    }
    return Pair.model_validate(given | changes)


@pytest.mark.parametrize(
    "change",
    [
        {"chosen": "yes TEA"},
        {"rejected": "«No» —  tea!!"},
        {"question": "what of\ttea"},
        {"profile": (Post(id="9", text="I  wrote: tea"),)},
        {"chosen": "Yes, ｔｅａ."},
    ],
)
def test_the_same_words_are_the_same_text(change: dict) -> None:
    with pytest.raises(DataError, match="1 text of the test split is in the training split"):
        check_apart([_pair("tea")], [_pair("soup", **change)], what="test")


def test_composed_and_decomposed_letters_are_the_same() -> None:
    with pytest.raises(DataError):
        check_apart([_pair("tea", chosen="Café.")], [_pair("soup", chosen="Cafe\u0301.")], what="test")


def test_other_words_are_other_texts() -> None:
    check_apart([_pair("tea")], [_pair("soup")], what="test")
    check_apart([_pair("tea", chosen="👍")], [_pair("soup", chosen="👎")], what="test")


def test_ids_do_not_matter() -> None:
    other = _pair("soup").model_copy(update={"id": "tea", "user": "tea"})
    check_apart([_pair("tea")], [other], what="test")


def test_the_same_sign_without_a_word_is_found() -> None:
    with pytest.raises(DataError, match="👍"):
        check_apart([_pair("tea", chosen="👍")], [_pair("soup", chosen=" 👍")], what="test")


def _split(pair: Pair, split: str) -> Pair:
    return pair.model_copy(update={"tags": {"split": split}})


def test_known_users_may_have_their_posts_but_no_known_answer() -> None:
    train = [_pair("tea")]
    same_user = _pair("soup", profile=train[0].profile)
    check_splits(train, [_split(same_user, "seen-users")], "validation")
    with pytest.raises(DataError, match="of the test split"):
        check_splits(train, [_split(same_user, "test")], "validation")
    with pytest.raises(DataError, match="of the seen-users split"):
        check_splits(train, [_split(_pair("soup", rejected="no tea"), "seen-users")], "validation")


def test_other_texts_that_are_learned_from_are_checked_too() -> None:
    with pytest.raises(DataError, match="of the mine split"):
        check_splits([_pair("tea")], [_split(_pair("soup"), "mine")], "mine", extra=["no soup"])


def test_other_texts_are_held_against_every_split_also_if_they_come_one_by_one() -> None:
    everything = [_split(_pair("cake"), "validation"), _split(_pair("soup"), "test")]
    with pytest.raises(DataError, match="of the test split"):
        check_splits([_pair("tea")], everything, "validation", extra=(text for text in ["no soup"]))


def test_what_the_package_ships_is_apart() -> None:
    everything = load_pairs("mirror")
    train = [pair for pair in everything if pair.tags["split"] == "train"]
    forms = [text for form in load_forms() for text in form]
    flaws = [text for one in load_flaws() for text in (one.question, *one.sound, *one.flawed)]
    extra = [*(passage.text for passage in load_passages()), *forms, *flaws]
    check_splits(train, everything, "validation", extra=extra)


def test_a_text_that_shares_eight_words_in_a_row_with_a_held_out_one_is_refused() -> None:
    long = "the soup that my uncle made on Sundays was thin and sour"
    everything = [_split(_pair("soup").model_copy(update={"chosen": long}), "test")]
    check_splits([_pair("tea")], everything, "validation", extra=["My uncle made on Sundays was thin? No."])
    with pytest.raises(DataError, match="shares 8 words in a row with the test split"):
        check_splits([_pair("tea")], everything, "validation", extra=["Alas, the soup that my uncle made on Sundays!"])
