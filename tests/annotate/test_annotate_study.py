"""What a study is made of: who sees what in which order, secrets, and a file that is continued or refused."""

import stat
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate_study import pairs, study
from prbench.annotate.people import find_invited, forget
from prbench.annotate.store import Store
from prbench.annotate.study import assign, read_study, renew_invitations, shows_chosen_first
from prbench.errors import ConfigError
from small_suite import mirrored


@given(st.integers(0, 40), st.integers(1, 7), st.data(), st.integers(0, 5))
def test_every_pair_has_its_annotators_and_everyone_the_same_share(count, annotators, data, seed):
    overlap = data.draw(st.integers(1, annotators))
    seen_by = assign(count, annotators, overlap, seed)
    assert all(len(set(people)) == overlap for people in seen_by)
    load = Counter(one for people in seen_by for one in people)
    counts = [load[one] for one in range(annotators)]
    assert max(counts) - min(counts) <= 1
    assert seen_by == assign(count, annotators, overlap, seed)


def tasks(opened):
    with opened.store.reading() as connection:
        rows = connection.execute("SELECT task.*, source FROM task JOIN pair ON pair.id = task.pair ORDER BY task.id")
        return [dict(row) for row in rows]


def test_orders_are_random_by_person_and_pair_and_recorded(tmp_path):
    made = tasks(study(tmp_path, pairs(60), pairs=None))
    assert all(
        bool(task["chosen_first"]) == shows_chosen_first(0, task["annotator"] - 1, task["source"]) for task in made
    )
    assert 35 < sum(task["chosen_first"] for task in made) < 85
    ann, bob = ({t["source"]: t["chosen_first"] for t in made if t["annotator"] == one} for one in (1, 2))
    assert 10 < sum(ann[source] != bob[source] for source in ann) < 50
    assert [t["pair"] for t in made if t["annotator"] == 1] != [t["pair"] for t in made if t["annotator"] == 2]


def test_codes_say_nothing_and_differ_between_people(tmp_path):
    made = tasks(study(tmp_path))
    assert len({task["code"] for task in made}) == len(made) == 12
    again = tasks(study(tmp_path / "again"))
    assert not {task["code"] for task in made} & {task["code"] for task in again}  # random, not derived from the pair
    assert [task["pair"] for task in made] == [task["pair"] for task in again]


def test_only_hashes_of_tokens_are_kept_in_a_file_that_is_the_owners(tmp_path):
    opened = study(tmp_path)
    assert len({invitation.token for invitation in opened.invitations}) == 2
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(invitation.token.encode() in kept for invitation in opened.invitations)
    assert stat.S_IMODE(opened.store.path.stat().st_mode) == 0o600


def test_the_same_command_continues_and_prints_no_secret_again(tmp_path):
    first = study(tmp_path)
    again = study(tmp_path)
    assert again.study == first.study == read_study(again.store)
    assert again.invitations == ()
    renewed = renew_invitations(again.store)
    with again.store.reading() as connection:
        assert find_invited(connection, first.invitations[0].token) is None
        assert find_invited(connection, renewed[1].token).name == "bob"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "seed 0 there, 1 asked for"),
        ({"overlap": 1}, "overlap 2 there, 1 asked for"),
        ({"of": pairs(5)}, "pairs 6 there, 5 asked for; other pairs"),
        ({"mode": "self"}, "mode pairs there, self asked for"),
        ({"names": ("ann", "cy")}, "other annotators: ann, bob"),
        ({"names": ("ann", "bob", "cy"), "overlap": 2}, "other annotators: ann, bob"),
    ],
)
def test_another_study_is_not_continued(tmp_path, change, words):
    study(tmp_path)
    with pytest.raises(ConfigError, match=words):
        study(tmp_path, **change)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"names": ("ann", "ann")}, "names that differ"),
        ({"names": ()}, "need names"),
        ({"overlap": 3}, "--overlap 3 of 2"),
        ({"of": [pair.model_copy(update={"profile": ()}) for pair in pairs()]}, "no pair has a profile"),
    ],
)
def test_what_cannot_be_studied_leaves_no_file(tmp_path, options, words):
    with pytest.raises(ConfigError, match=words):
        study(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "annotations.sqlite").write_text("not a database, but long enough to look at" * 10)
    with pytest.raises(ConfigError, match="cannot be read as a study"):
        study(tmp_path)
    with pytest.raises(ConfigError, match="does not exist"):
        Store.existing(tmp_path / "nothing.sqlite")


def test_who_deleted_their_data_is_not_missed_when_a_study_goes_on(tmp_path):
    opened = study(tmp_path)
    with opened.store.writing() as connection:
        forget(connection, 2)
    assert study(tmp_path).study == opened.study
    with pytest.raises(ConfigError, match=r"other annotators: ann, \(deleted\)"):
        study(tmp_path, names=("cy", "bob"))


def test_the_log_of_a_removed_study_is_not_played_into_a_new_one(tmp_path):
    opened = study(tmp_path, names=("old ann", "old bob"))
    log = tmp_path / "annotations.sqlite-wal"
    with opened.store.writing() as connection:
        forget(connection, 1)
        connection.execute("COMMIT")
        left = log.read_bytes()  # as `kill -9` leaves it
        connection.execute("BEGIN")
    opened.store.path.unlink()
    log.write_bytes(left)
    with pytest.raises(ConfigError, match="belongs to a study whose file is not there"):
        study(tmp_path)
    assert log.read_bytes() == left
    log.unlink()
    made = study(tmp_path)
    with made.store.reading() as connection:
        assert [find_invited(connection, one.token).name for one in made.invitations] == ["ann", "bob"]


def test_half_a_study_is_none(tmp_path, monkeypatch):
    def fails(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("prbench.annotate.study._write_people", fails)
        with pytest.raises(KeyboardInterrupt):
            study(tmp_path)
    assert not (tmp_path / "annotations.sqlite").exists()
    assert len(study(tmp_path).invitations) == 2


def test_in_mode_self_the_halves_of_a_couple_are_one(tmp_path):
    suite = mirrored(couples=2, questions=3)
    opened = study(tmp_path, suite, mode="self", pairs=None)
    assert len({(pair.question, frozenset((pair.chosen, pair.rejected))) for pair in suite}) == opened.study.pairs == 3
    assert study(tmp_path / "both", suite, pairs=None).study.pairs == 12


def test_a_sample_keeps_couples_whole(tmp_path):
    opened = study(tmp_path, mirrored(couples=3, questions=6), pairs=8)
    with opened.store.reading() as connection:
        sources = {row["source"] for row in connection.execute("SELECT source FROM pair")}
    assert len(sources) == 8
    assert set(Counter(source[:2] + source[3:] for source in sources).values()) == {2}
