"""A run on disk: locks, torn lines, replay."""

import pytest
from filelock import FileLock

from prbench import evaluate
from prbench.config import RunConfig
from prbench.data import Suite
from prbench.errors import ContextError, ModelError, RunError
from prbench.files import Appender, cut_torn_line, whole_lines, write_whole
from prbench.files.append import SYNC_LINES
from prbench.results import RunFolder, verify
from prbench.results.folder import LOCK
from prbench.run import Session, execute
from prbench.types import Record
from small_suite import Spy, SpyComparer, follows_posts, likes_first, mirrored


@pytest.fixture
def run(tmp_path):
    evaluate(
        follows_posts, mirrored(), contexts=["none", "profile", "other", "oracle"], out=tmp_path / "run", by=["axis"]
    )
    return tmp_path / "run"


def test_everything_in_a_run_folder_is_there(run):
    names = {path.name for path in run.iterdir()} - {"run.lock"}
    assert names == {
        "baselines.jsonl",
        "config.toml",
        "dataset.json",
        "measured.json",
        "pairs.jsonl",
        "records.jsonl",
        "records.parquet",
        "result.json",
        "run.json",
        "verified.json",
    }


def test_a_second_writer_is_refused(run):
    with RunFolder(run).locked(), pytest.raises(RunError, match="another process is writing"), RunFolder(run).locked():
        pass


def test_a_torn_last_line_is_dropped_and_the_rest_kept(run):
    path = run / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"pair": "torn", "cont')
    assert len(RunFolder(run).records()) == 108
    cut_torn_line(path)
    assert path.read_bytes() == whole
    path.write_bytes(b"no newline at all")
    cut_torn_line(path)
    assert path.read_bytes() == b""


def test_a_damaged_line_in_the_middle_is_named(run):
    path = run / "records.jsonl"
    path.write_text("not json\n" + path.read_text())
    with pytest.raises(RunError, match="line 1 is damaged"):
        RunFolder(run).records()


def test_write_whole_leaves_the_old_file_on_failure(tmp_path):
    target = tmp_path / "file.json"
    write_whole(target, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(target, "\ud800")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_not_a_run_folder(tmp_path):
    with pytest.raises(RunError, match="is not a run folder"):
        verify(tmp_path)


def test_an_appender_cuts_a_torn_line_and_syncs_in_batches(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"pair":"torn')
    record = Record(pair="1", context="none", order="rated", status="ok", verdict="tie")
    with Appender(path) as appender:
        for _ in range(SYNC_LINES):
            appender.append(record)
        assert len(list(whole_lines(path))) == SYNC_LINES  # on disk before the file is closed


def test_a_folder_with_other_files_is_refused_and_untouched(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "pairs.jsonl").write_text("my own data")
    with pytest.raises(RunError, match="is not empty and not a run"):
        evaluate(follows_posts, mirrored(), out=mine)
    assert [path.name for path in mine.iterdir()] == ["pairs.jsonl"]
    assert (mine / "pairs.jsonl").read_text() == "my own data"


def test_a_folder_that_is_a_file_and_a_damaged_configuration_are_said(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .* is a file, not a folder"):
        evaluate(follows_posts, mirrored(), out=tmp_path / "file")
    (run / "config.toml").write_text("not = = toml")
    with pytest.raises(RunError, match=r"config\.toml is damaged"):
        verify(run)


def test_all_splits_are_remembered_as_all(tmp_path):
    pairs = [
        *mirrored(split="test"),
        *[
            p.model_copy(
                update={
                    "id": f"t{p.id}",
                    "tags": {
                        **p.tags,
                        "split": "train",
                        "mirror": f"t{p.tags['mirror']}",
                        "couple": f"t{p.tags['couple']}",
                    },
                    "user": f"t{p.user}",
                }
            )
            for p in mirrored(split="train")
        ],
    ]
    found = evaluate(follows_posts, pairs, split=None, contexts=["profile"], out=tmp_path / "all")
    assert found.split is None
    assert found.contexts["profile"].accuracy.n == 72
    assert verify(tmp_path / "all").mismatches == ()


@pytest.mark.parametrize("settings", [{}, {"both_orders": False}, {"repeats": 2}])
def test_stored_records_of_a_comparer_replay_exactly(tmp_path, settings):
    def shaky(question, first, second, posts):
        return "nonsense" if "bread" in question else likes_first(question, first, second, posts)

    for number, model in enumerate((SpyComparer(lean=5.0), shaky, follows_posts)):
        made = evaluate(model, mirrored(), contexts=["profile"], out=tmp_path / f"run{number}", **settings)
        again = evaluate(f"stored:{tmp_path / f'run{number}' / 'records.jsonl'}", mirrored(), contexts=["profile"])
        one, two = (found.contexts["profile"] for found in (made, again))
        for key in ("accuracy", "strict_accuracy", "invalid_records", "failed_records", "reasons", "position"):
            assert getattr(one, key) == getattr(two, key), key


def test_stored_scores_replay_a_run(run, tmp_path):
    again = evaluate(f"stored:{run / 'records.jsonl'}", mirrored(), contexts=["none", "profile"])
    assert again.contexts["profile"].accuracy.value == 1.0
    with pytest.raises(ContextError, match="no scores for context 'plan'"):
        evaluate(f"stored:{run / 'records.jsonl'}", mirrored(), contexts=["plan"])


def test_stored_scores_by_id(tmp_path):
    pairs = mirrored(couples=1, questions=2)
    path = tmp_path / "scores.csv"
    path.write_text(
        "id,chosen_score,rejected_score\n" + "".join(f"{pair.id},{i},1\n" for i, pair in enumerate(pairs[:3]))
    )
    found = evaluate(f"stored:{path}", pairs, contexts=["profile"])
    profile = found.contexts["profile"]
    assert profile.accuracy.value == 0.5  # lost, tie, won
    assert profile.reasons == {"not in scores.csv": 1}
    with pytest.raises(ContextError, match="can stand for one only"):
        evaluate(f"stored:{path}", pairs, contexts=["none", "profile"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"chosen_score": 1, "rejected_score": 2}\n', "no pair id"),
        ('{"id": "1", "chosen": 1}\n', "neither chosen_score"),
        ('{"id": "1", "chosen_score": "x", "rejected_score": 2}\n', "'x' is not a number"),
        ('{"id": "1", "verdict": "A"}\n', "verdict is 'A'"),
        ('{"id": "1", "verdict": "tie"}\n{"id": "1", "verdict": "tie"}\n', "a second row"),
        ("nonsense\n", "line 1"),
        ("[1]\n", "expected an object"),
    ],
)
def test_bad_stored_files_name_the_line(tmp_path, text, message):
    path = tmp_path / "scores.jsonl"
    path.write_text(text)
    with pytest.raises(ModelError, match=message):
        evaluate(f"stored:{path}", mirrored(), contexts=["profile"])


def test_records_round_trip_through_json():
    record = Record(pair="1", context="none", order="chosen-second", status="ok", verdict="second", margin=0.5)
    assert Record.model_validate_json(record.model_dump_json(exclude_defaults=True)) == record
    assert record.credit == 1.0


def test_a_run_of_one_spy_is_the_same_whatever_the_order_of_pairs(tmp_path):
    pairs = mirrored()
    one = evaluate(Spy(), pairs, contexts=["profile"])
    two = evaluate(Spy(), list(reversed(pairs)), contexts=["profile"])
    assert one.contexts == two.contexts


def test_a_folder_that_another_process_began_a_moment_ago_is_not_removed(tmp_path):
    class Contested(RunFolder):
        def locked(self):
            self.path.mkdir()  # after this process has looked whether it is there
            self.held = FileLock(self.path / LOCK)
            self.held.acquire()
            return super().locked()

    suite = Suite.of(mirrored(), name="small")
    session = Session(RunConfig.of(suite="small", model="longer", contexts="none", resamples=100), suite=suite)
    folder = Contested(tmp_path / "run")
    with pytest.raises(RunError, match="another process is writing"):
        execute(session, folder)
    assert (tmp_path / "run" / LOCK).is_file()
    folder.held.release()
