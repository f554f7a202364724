"""POST /rank: answers to one question are seen together, whole or not at all."""

import pytest

from fake_server import FakeServer
from prbench.config import ModelOptions
from prbench.errors import ConfigError
from prbench.models import load_model
from prbench.serve import RewardClient, RewardError
from prbench.serve.rollout import label
from prbench.types import Message, Outcome, Post, Prompt
from serve_models import Recorder, known_score

POSTS = (Post(id="1", text="I like tea."),)
LIST = {"question": "Tea?", "posts": ["I like tea."], "answers": ["Green.", "Black tea.", "Mint, please."]}


class Together(Recorder):
    """Rates like its base, and ranks by how far an answer is from the mean length; keeps the lists it was shown."""

    favours_places = True
    most_answers = 8

    def __init__(self):
        super().__init__()
        self.lists = []

    def render(self, view):
        if hasattr(view, "answers"):
            return Prompt(tuple(Message("answer", answer) for answer in view.answers))
        return super().render(view)

    def rank(self, views):
        for place, view in enumerate(views):
            self.lists.append(view)
            if "break" in view.answers:
                raise RuntimeError("a secret path")
            if "odd" in view.answers:
                yield place, Outcome.invalid("no ranking")
            else:
                yield place, Outcome.ranked([float(len(answer)) for answer in view.answers])


@pytest.fixture
def model():
    return Together()


def test_a_list_is_seen_together_in_every_rotation(start, model):
    with start(model) as client:
        response = client.post("/rank", json=LIST)
    assert (response.status_code, response.json()["scores"]) == (200, [6.0, 10.0, 13.0])
    assert [view.answers[0] for view in model.lists] == LIST["answers"]
    assert model.lists[0].posts == POSTS


def test_answers_that_say_nothing_are_not_shown_and_stand_last(start, model):
    with start(model) as client:
        response = client.post("/rank", json={**LIST, "answers": ["Green.", "", "Mint, please."]})
        silent = client.post("/rank", json={**LIST, "answers": ["", " "]})
    assert response.json()["scores"] == [6.0, -1.0, 13.0]
    assert response.json()["items"][1] == {"score": -1.0, "degenerate": True}
    assert all("" not in view.answers for view in model.lists)
    assert len(set(silent.json()["scores"])) == 1


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"answers": ["Green."]}, 400, "answers"),
        ({"answers": []}, 400, "answers"),
        ({"answer": "Green."}, 400, "not 'answer'"),
        ({"answers": ["a", 3]}, 400, "answers[1]"),
        ({"answers": list("abcdefghi")}, 413, "8 can be ranked together"),
        ({"answers": ["a" * 30_000, "b"]}, 413, "--max-text"),
    ],
)
def test_a_list_that_cannot_be_ranked_is_refused_before_the_model_is_asked(start, model, changes, status, said):
    with start(model) as client:
        response = client.post("/rank", json={**LIST, **changes})
    assert response.status_code == status
    assert said in response.json()["error"]["message"]
    assert not model.lists


@pytest.mark.parametrize(("answer", "status", "kind"), [("odd", 422, "invalid"), ("break", 500, "failed")])
def test_a_list_without_a_ranking_has_no_number(start, model, answer, status, kind):
    with start(model) as client:
        response = client.post("/rank", json={**LIST, "answers": ["Green.", answer]})
    assert (response.status_code, response.json()["scores"]) == (status, [None, None])
    assert {one["error"]["kind"] for one in response.json()["items"]} == {kind}
    assert "secret" not in response.text


def test_a_rater_gives_a_list_the_scores_of_its_answers(start):
    with start(Recorder()) as client:
        response = client.post("/rank", json=LIST)
    assert response.json()["scores"] == [known_score("Tea?", answer, POSTS) for answer in LIST["answers"]]


@pytest.fixture
def judge():
    """A chat endpoint that ranks longer answers before shorter ones."""

    def answer(body):
        shown = [text for text in LIST["answers"] if text in body["messages"][-1]["content"]]
        shown.sort(key=body["messages"][-1]["content"].index)
        order = sorted(range(len(shown)), key=lambda place: -len(shown[place]))
        return "Ranking: " + " > ".join(str(place + 1) for place in order)

    with FakeServer(answer) as server:
        yield server


def test_a_model_that_only_ranks_is_served_for_lists(start, judge):
    with start(load_model(f"chat:j@{judge.url}#rank")) as client:
        ranked = client.post("/rank", json=LIST)
        asked = len(judge.requests)
        item = {"question": "Tea?", "posts": ["I like tea."], "answer": "Green."}
        alone = client.post("/score", json={"items": [item]})
        silent = client.post("/score", json={"items": [{**item, "answer": ""}]})
        remote = client.post(
            "/get_reward", json={"query": ["Tea? Green."], "prompts": ["Tea?"], "labels": [label("Tea?", "ann")]}
        )
        health = client.get("/health").json()
    assert (ranked.status_code, ranked.json()["scores"]) == (200, [0.0, 0.5, 1.0])
    assert asked == len(judge.requests) == 3  # one for each rotation, and none for what is refused
    assert "I like tea." in judge.requests[0].text
    for refused in (alone, silent, remote):
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "lists-only")
        assert "POST /rank" in refused.json()["error"]["message"]
    assert (health["status"], health["adapts"]) == ("ready", False)


def test_a_model_that_only_ranks_is_checked_like_any_other(start, tmp_path):
    template = tmp_path / "rank.jinja"
    template.write_text("{{ question }}{% for answer in answers %}{{ answer }}{% endfor %}")
    blind = load_model("chat:j@http://127.0.0.1:9/v1#rank", ModelOptions(template=template))
    with pytest.raises(ConfigError, match="does not read posts"), start(blind):
        pass


def test_the_client_ranks(start, model):
    with start(model) as http, RewardClient(str(http.base_url)) as client:
        assert client.rank("Tea?", LIST["answers"], posts=LIST["posts"]) == [6.0, 10.0, 13.0]
        with pytest.raises(RewardError, match="nothing to rank"):
            client.rank("Tea?", ["Green."], posts=[])
        with pytest.raises(RewardError, match="no ranking"):
            client.rank("Tea?", ["odd", "Green."], posts=LIST["posts"])
        assert (client.tally.asked, client.tally.scored) == (5, 3)
