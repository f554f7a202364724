"""The leaderboard: what is listed, what is not and why, and that the page is plain HTML that says the same."""

import html
import json
import re
import shutil
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from prbench import evaluate
from prbench.cli.app import app
from prbench.data import Suite
from prbench.errors import ConfigError
from prbench.models.python import wrap
from prbench.report.leaderboard import find_runs, leaderboard_page, published, read_boards, write_site
from prbench.report.leaderboard.board_tables import leaderboard_tables
from prbench.results import load_run, standings
from prbench.show import render
from small_suite import follows_posts, mirrored

NASTY = 'py:x:<script>alert("1")</script>'


def half_blind(question, answer, posts):
    return follows_posts(question, answer, posts) if "tea" in question or "boots" in question else 0.0


def silent(question, first, second, posts):
    return "first" if "tea" in question else None


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    pairs = mirrored(couples=12)
    models = {
        "good": wrap(follows_posts, "py:lb:good"),
        "half": wrap(half_blind, NASTY),
        "silent": wrap(silent, "py:lb:silent"),
        "longer": "longer",
    }
    for name, model in models.items():
        contexts = ["none"] if name == "longer" else ["none", "profile", "other"]
        evaluate(model, pairs, contexts=contexts, resamples=100, out=folder / name)
    evaluate(models["good"], pairs[:12], contexts=["profile"], resamples=100, out=folder / "nested" / "few")
    broken = shutil.copytree(folder / "good", folder / "broken")
    text = (broken / "result.json").read_text(encoding="utf-8")
    (broken / "result.json").write_text(text.replace('"value": 1.0', '"value": 0.9'), encoding="utf-8")
    unfinished = shutil.copytree(folder / "good", folder / "unfinished")
    (unfinished / "result.json").unlink()
    shutil.copytree(folder / "good", folder / "twin")
    (folder / "models.toml").write_text('["py:lb:good"]\nname = "Good one"\nweights = "closed"\n', encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "site"
    return out, write_site(results, out)


def rows_of(site):
    return json.loads((site / "leaderboard.json").read_text(encoding="utf-8"))


def test_runs_are_found_wherever_they_lie(results):
    names = {path.relative_to(results).as_posix() for path in find_runs(results)}
    assert names == {"good", "half", "silent", "longer", "nested/few", "broken", "unfinished", "twin"}
    with pytest.raises(ConfigError, match="there is no folder"):
        find_runs(results / "absent")


def test_what_cannot_be_recomputed_is_left_out_and_named(site):
    _, found = site
    reasons = {item.path.name: item.reason for item in found.left_out}
    assert set(reasons) == {"broken", "unfinished", "twin"} or set(reasons) == {"broken", "unfinished", "good"}
    assert "do not follow from its records" in reasons["broken"]
    assert "is not finished" in reasons["unfinished"]
    assert "the same run as" in next(reason for name, reason in reasons.items() if name in ("twin", "good"))
    printed = render(leaderboard_tables(found), "table")
    assert "Not listed" in printed
    assert "unfinished" in printed


def test_different_pairs_are_different_boards(site):
    _, found = site
    assert [board.counts.pairs for board in found.boards] == [144, 12]
    assert len({board.fingerprint for board in found.boards}) == 2


def test_ranks_are_those_of_the_paired_tests(site, results):
    out, _ = site
    rows = [row for row in rows_of(out) if row["context"] == "profile" and row["suite_fingerprint"] == _largest(out)]
    assert [row["name"] for row in rows][:2] == ["Good one", NASTY]
    expected = standings([load_run(results / name) for name in ("good", "half")], "profile")
    assert [(row["best_rank"], row["worst_rank"], row["group"]) for row in rows[:2]] == [
        (place.best_rank, place.worst_rank, "".join(place.letters)) for place in expected
    ]
    assert (rows[2]["model"], rows[2]["best_rank"]) == ("py:lb:silent", None)  # speaks on a sixth of the pairs
    assert [row["context"] for row in rows_of(out) if row["effects"]] == ["profile"] * 3  # whose effects they are


def _largest(site):
    return max(rows_of(site), key=lambda row: row["accuracy"]["n"])["suite_fingerprint"]


def test_each_row_can_be_traced(site):
    out, _ = site
    for row in rows_of(out):
        config = (out / row["config"]).read_text(encoding="utf-8")
        assert f"resamples = {100}" in config
        assert row["command"].startswith("prbench run --suite ")
        assert len(row["records_fingerprint"]) == 64
    page = (out / "index.html").read_text(encoding="utf-8")
    for row in rows_of(out):
        assert row["records_fingerprint"] in page
        assert html.escape(row["command"], quote=False) in page.replace("&#39;", "'").replace("&#34;", '"')
    links = set(re.findall(r'href="(runs/[^"]+)"', page))
    assert links
    assert all((out / link).is_file() for link in links)


def test_kinds_and_weights(site):
    out, _ = site
    about = {row["model"]: (row["kind"], row["weights"]) for row in rows_of(out)}
    assert about == {
        "py:lb:good": ("rater", "closed"),  # as models.toml says
        NASTY: ("rater", "not known"),
        "py:lb:silent": ("comparer", "not known"),
        "longer": ("baseline", "open"),
    }


class Structure(HTMLParser):
    """Every element's name and attributes, and whether all that were opened were closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "input", "br", "circle", "line", "path", "option"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag != "option":
            assert self.open.pop() == tag


def test_the_page_is_whole_escaped_and_reads_without_scripts(site):
    out, _ = site
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    structure = Structure()
    structure.feed(page)
    assert structure.open == []
    assert not [attributes for _, attributes in structure.found if "style" in attributes]
    ids = [attributes["id"] for _, attributes in structure.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    form = next(attributes for tag, attributes in structure.found if tag == "form")
    assert "hidden" in form  # filters appear only where they work
    lines = [attributes for tag, attributes in structure.found if tag == "tr" and "data-kind" in attributes]
    assert len(lines) == len(rows_of(out)) + 3 + 4  # and the baselines that nobody ran on each board


def test_published_figures_stand_apart(site):
    out, _ = site
    page = (out / "index.html").read_text(encoding="utf-8")
    ours, theirs = page.split('id="published"')
    assert "75.94" in theirs
    assert "75.94" not in ours
    assert not any(item.figure in json.dumps(rows_of(out)) for item in published())
    assert all(item.url.startswith("https://arxiv.org/abs/") for item in published())


def test_a_site_is_replaced_and_a_strangers_folder_is_not(results, tmp_path):
    out = tmp_path / "site"
    write_site(results / "nested", out)
    (out / "runs" / "old").mkdir()
    (out / ".git").mkdir()
    (out / "CNAME").write_text("board.example", encoding="utf-8")
    write_site(results / "nested", out)
    assert sorted(path.name for path in out.iterdir()) == [".git", "CNAME", "index.html", "leaderboard.json", "runs"]
    assert not (out / "runs" / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.tex").write_text("precious", encoding="utf-8")
    with pytest.raises(ConfigError, match="nothing in it was touched"):
        write_site(results / "nested", other)
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]


def test_a_folder_without_runs_is_an_error_and_an_empty_board_a_page(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="there is no run"):
        write_site(tmp_path / "empty", tmp_path / "site")
    assert not (tmp_path / "site").exists()
    assert "no run to list yet" in leaderboard_page([])


def test_a_damaged_run_does_not_keep_others_off_the_board(results, tmp_path):
    shutil.copytree(results / "nested", tmp_path / "r")
    shutil.copytree(results / "nested" / "few", tmp_path / "r" / "old")
    (tmp_path / "r" / "old" / "run.json").write_text('{"of": "another version"}', encoding="utf-8")
    found = write_site(tmp_path / "r", tmp_path / "site")
    assert [item.path.name for item in found.left_out] == ["old"]
    assert len(found.boards) == 1


def test_of_two_copies_of_a_run_the_older_one_is_left_out(results, tmp_path):
    for name in ("a", "b", "c"):
        shutil.copytree(results / "nested" / "few", tmp_path / name)
    data = json.loads((tmp_path / "b" / "result.json").read_text(encoding="utf-8"))
    data["result"]["timing"]["finished"] = "2999-01-01T00:00:00+00:00"
    (tmp_path / "b" / "result.json").write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "b" / "measured.json").unlink()  # what was measured is held against it
    found = read_boards([tmp_path / name for name in ("a", "b", "c")])
    assert [item.path.name for item in found.left_out] == ["a", "c"]
    assert [entry.run.loaded.path.name for entry in found.boards[0].entries] == ["b"]


def test_the_same_pairs_under_two_names_are_two_boards_with_places_of_their_own(tmp_path):
    for name in ("one", "two"):
        suite = Suite.of(mirrored(), name=name)
        evaluate("longer", suite, contexts=["none"], resamples=100, out=tmp_path / name)
    boards = read_boards([tmp_path / "one", tmp_path / "two"]).boards
    assert len({board.fingerprint for board in boards}) == 1
    assert len({board.slug for board in boards}) == 2


def test_the_command_prints_one_json_value(results, tmp_path):
    done = CliRunner().invoke(app, ["leaderboard", str(results), "-o", str(tmp_path / "site"), "--format", "json"])
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["rows"] == rows_of(tmp_path / "site")
    assert "is not finished" in next(item["why"] for item in data["not_listed"] if "unfinished" in item["run"])


def test_a_damaged_models_file_is_named(results, tmp_path):
    shutil.copytree(results / "nested", tmp_path / "r")
    (tmp_path / "r" / "models.toml").write_text('["longer"]\nweigths = "open"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"models\.toml.* is damaged"):
        write_site(tmp_path / "r", tmp_path / "site")


def test_runs_of_one_model_under_two_configurations_are_both_listed(tmp_path):
    evaluate(wrap(follows_posts, "py:lb:good"), mirrored(couples=12), contexts=["profile"], seed=5, out=tmp_path / "s")
    evaluate(wrap(follows_posts, "py:lb:good"), mirrored(couples=12), contexts=["profile"], seed=6, out=tmp_path / "t")
    (board,) = read_boards([tmp_path / "s", tmp_path / "t"]).boards
    assert len(board.sections[0].lines) == 2
    assert len({line.entry.slug for line in board.sections[0].lines}) == 2
