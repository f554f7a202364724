"""The report page as a file: what it shows, what it refuses, what it says where something is missing."""

import base64
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from prbench import evaluate
from prbench.cli import app
from prbench.errors import ConfigError, RunError
from prbench.report.page import report_page
from prbench.report.page.columns import pack
from prbench.report.page.evidence import read_runs
from prbench.report.page.ranking import ranking_section
from prbench.report.page.texts import load_texts
from prbench.report.payload import Block, read_block
from prbench.show.page import Section
from report_runs import NASTY, make_runs, suite
from small_suite import follows_posts, mirrored

GOLDEN = Path(__file__).parent / "golden" / "ranking.html.txt"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(runs):
    return report_page(runs)


def unpack(page):
    """The index and all blocks of a page, read from its text as a browser would."""
    index = json.loads(re.search(r'id="index">(.*?)</script>', page, re.DOTALL)[1])
    texts = dict(re.findall(r'<script type="application/vnd.prbench\+gzip" id="([^"]+)">([^<]*)</script>', page))
    return index, {
        name: read_block(Block(name, index["blocks"][name], base64.b64decode(text))) for name, text in texts.items()
    }


def test_the_ranking_is_a_golden_table(runs):
    html = str(ranking_section(read_runs(runs)).body) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(html, encoding="utf-8")
    assert html == GOLDEN.read_text(encoding="utf-8")


def test_every_section_is_there_and_the_bar_leads_to_it(page):
    ids = re.findall(r'<section class="block" id="(\w+)"', page)
    assert ids == ["ranking", "contexts", "groups", "users", "mirror", "bias", "calibration", "cost", "reproduce"]
    assert set(re.findall(r'<a href="#(\w+)">', page)) == {*ids, "pairs"}


def test_numbers_are_those_of_the_result(page, runs):
    result = json.loads((runs[0] / "result.json").read_text())["result"]
    for name in result["contexts"]:
        value = result["contexts"][name]["accuracy"]["value"]
        assert f"{100 * value:.1f} [" in page


def test_nothing_from_data_is_markup(page):
    assert "window.hacked" not in page  # texts lie packed
    assert "<b>speaker" not in page
    assert "py:tests:&lt;b&gt;speaker&lt;/b&gt;" in page
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "unsafe" not in policy
    assert "default-src &#39;none&#39;" in policy
    assert not re.search(r'<[a-z][^>]*\s(style|on\w+)="', page.split('id="index"')[0].split("</style>")[-1])


def test_the_page_names_no_address_outside_itself(page):
    outside = re.findall(r'(?:href|src|action)="(?!#|data:)[^"]*"', page)
    assert outside == []


def test_the_payload_holds_what_the_runs_say(page, runs):
    index, blocks = unpack(page)
    pairs = suite()
    core = blocks["core"]
    assert sorted(core["ids"]) == sorted(pair.id for pair in pairs)
    by_id = {pair.id: pair for pair in pairs}
    answers, questions = blocks["answers-0"]["texts"], blocks["questions-0"]["texts"]
    for number, name in enumerate(core["ids"]):
        assert questions[core["question"][number]] == by_id[name].question
        assert answers[core["chosen"][number]] == by_id[name].chosen
        twin = core["ids"][core["twin"][number] - 1]
        assert by_id[twin].chosen == by_id[name].rejected
    records = [json.loads(line) for line in (runs[0] / "records.jsonl").read_text().splitlines()]
    model = blocks["model-0"]
    for record in records:
        number = core["ids"].index(record["pair"])
        assert model[f"{record['context']}.rated.0.margin"][number] == pytest.approx(record.get("margin", 0.0))
    assert index["models"][0]["label"] == "py:tests:narrow"
    assert index["models"][2]["unsupported"] == ["profile"]


def test_what_was_shown_and_dropped_is_what_the_records_say(page, runs):
    _, blocks = unpack(page)
    core, people, model = blocks["core"], blocks["people"], blocks["model-0"]
    seen = set()
    for line in (runs[0] / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        context, number = record["context"], core["ids"].index(record["pair"])
        if context not in ("profile", "other", "opposite"):
            continue
        posts = [people["post_ids"][post] for post in people["profiles"][model[f"{context}.shown"][number] - 1]]
        gone = {posts[place] for place in model[f"{context}.gone"][model[f"{context}.dropped"][number]]}
        assert gone == set(record.get("dropped", ()))
        assert len(posts) - len(gone) == record["posts"]
        who = model[f"{context}.users"][model[f"{context}.who"][number]]
        assert who == record["shown_user"]
        assert all(post.startswith(who) for post in posts)
        seen.add((context, bool(gone), who == core["user_words"][core["user"][number]]))
    assert {("profile", True, True), ("other", True, False), ("opposite", True, False)} <= seen


def test_a_judges_words_are_kept(page):
    _, blocks = unpack(page)
    assert any("VERDICT: first." in text and NASTY in text for text in blocks["words-0"]["texts"])
    assert "no verdict in the reply" in blocks["model-1"]["reasons"]


def test_a_suite_that_changed_gives_a_page_without_texts_and_says_why(runs, tmp_path):
    folder = tmp_path / "moved"
    shutil.copytree(runs[0].parent, folder)
    text = (folder / "suite.jsonl").read_text()
    config = (folder / "narrow" / "config.toml").read_text()
    (folder / "narrow" / "config.toml").write_text(config.replace(str(runs[0].parent), str(folder)))
    assert unpack(report_page([folder / "narrow"]))[0]["texts"] is True
    (folder / "suite.jsonl").write_text(text.replace("boots", "shoes"))
    page = report_page([folder / "narrow"])
    assert "is not the one of the run" in page
    assert unpack(page)[0]["texts"] is False
    (folder / "suite.jsonl").unlink()
    page = report_page([folder / "narrow"])
    assert "cannot be read here" in page
    assert unpack(page)[1]["rubrics-0"]["texts"] == [""]
    assert "Questions, answers and posts are not shown" in page


def test_texts_are_left_out_on_demand(runs):
    page = report_page(runs, with_texts=False)
    index, blocks = unpack(page)
    assert index["texts"] is False
    assert blocks["answers-0"]["texts"] == [""]
    assert "Made without texts" in page


def test_a_run_that_goes_on_is_shown_as_far_as_it_is(runs, tmp_path):
    folder = tmp_path / "open"
    shutil.copytree(runs[0], folder)
    (folder / "result.json").unlink()
    lines = (folder / "records.jsonl").read_text().splitlines(keepends=True)
    (folder / "records.jsonl").write_text("".join(lines[:90]))
    page = report_page([folder])
    assert "the run is not finished (90 of 360 records)" in page


def test_a_file_that_may_not_grow_is_kept_small(runs):
    evidence = read_runs(runs)
    payload = pack(evidence, load_texts(evidence), room=0)
    assert [note.split(" are ")[0] for note in payload.notes] == ["Posts", "Judges' words"]


def test_of_very_many_pairs_a_sample_is_listed_and_said(runs, page, monkeypatch):
    monkeypatch.setattr("prbench.report.page.evidence.MOST_SHOWN", 10)
    sampled = report_page(runs)
    index, blocks = unpack(sampled)
    whole, everything = unpack(page)
    assert index["pairs"] == len(blocks["core"]["ids"]) == 10
    assert f"The list holds 10 of {whole['pairs']} pairs" in sampled
    assert "The list holds" not in page
    assert all(blocks["core"]["twin"])  # couples are whole
    places = [everything["core"]["ids"].index(id) for id in blocks["core"]["ids"]]
    for name in index["blocks"]["core"]:
        if name.startswith("credit."):
            assert blocks["core"][name].tolist() == everything["core"][name][places].tolist()
    numbers = re.compile(r'<section class="block" id="ranking".*?</section>', re.DOTALL)
    assert numbers.search(sampled)[0] == numbers.search(page)[0]


def test_a_study_adds_its_section(runs):
    extra = Section("study", "A <study>", "Look.", ranking_section(read_runs(runs[:1])).body, "Study")
    page = report_page(runs[:1], sections=[extra])
    assert page.index('id="study"') < page.index('id="reproduce"')
    assert "A &lt;study&gt;" in page
    assert '<a href="#study">Study</a>' in page


def test_runs_of_one_model_are_told_apart(runs, tmp_path):
    shutil.copytree(runs[0], tmp_path / "again")
    labels = [entry.label for entry in read_runs([runs[0], tmp_path / "again"]).entries]
    assert labels == ["py:tests:narrow · narrow", "py:tests:narrow · again"]


def test_runs_on_different_suites_do_not_share_a_page(runs, tmp_path):
    evaluate(follows_posts, mirrored(2, 3), contexts=["none"], resamples=100, out=tmp_path / "other", cache=False)
    with pytest.raises(RunError, match="not on the same suite"):
        report_page([runs[0], tmp_path / "other"])
    with pytest.raises(ConfigError, match="at least one run"):
        report_page([])


def test_a_suite_without_users_and_profiles_gets_a_page(tmp_path):
    pairs = [pair.model_copy(update={"profile": (), "tags": {}, "category": ""}) for pair in mirrored(1, 3)]
    evaluate("longer", pairs, contexts=["none"], resamples=100, out=tmp_path / "run", cache=False)
    page = report_page([tmp_path / "run"])
    assert 'id="mirror"' not in page
    assert 'id="groups"' not in page


def test_the_command_writes_the_page(runs, tmp_path):
    out = tmp_path / "sub" / "page.html"
    found = CliRunner().invoke(app, ["report", *map(str, runs), "-o", str(out)])
    assert found.exit_code == 0, found.output
    assert "needs no network" in found.output
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
