"""The table of replies to `rank.jinja`: what is read as a ranking, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.errors import TemplateError
from prbench.prompts import Template, UnreadableReply, parse_ranking
from prbench.types import ListView, Post

READ = [
    ("Ranking: 3 > 1 > 2", (0.5, 0.0, 1.0)),
    ("ranking: 3>1>2", (0.5, 0.0, 1.0)),
    ("**Ranking:** 3 > 1 > 2.", (0.5, 0.0, 1.0)),
    ("Ranking: [3] > [1] > [2]", (0.5, 0.0, 1.0)),
    ("Ranking: [3 > 1 > 2]", (0.5, 0.0, 1.0)),
    ("Ranking: Answer 3 > Answer 1 > Answer 2", (0.5, 0.0, 1.0)),
    ("Ranking: 3, 1, 2", (0.5, 0.0, 1.0)),
    ("Ranking: [3, 1, 2]", (0.5, 0.0, 1.0)),
    ("Final ranking: #3 > #1 > #2", (0.5, 0.0, 1.0)),
    ("Ranking: 3 > 1 = 2", (0.25, 0.25, 1.0)),
    ("Ranking: 3 = 1 > 2", (0.75, 0.0, 0.75)),
    ("Ranking: 1 = 2 = 3", (0.5, 0.5, 0.5)),
    ("3 > 1 > 2", (0.5, 0.0, 1.0)),
    ("Answer 1 is long.\n\nRanking: 3 > 1 > 2\n\nHope this helps!", (0.5, 0.0, 1.0)),
    ("Ranking: 3 > 1 > 2\nOnce more.\nRanking: 3 > 1 > 2", (0.5, 0.0, 1.0)),
    ('{"reasoning": "Brief.", "ranking": [3, 1, 2]}', (0.5, 0.0, 1.0)),
    ('```json\n{"ranking": ["3", "1", "2"]}\n```', (0.5, 0.0, 1.0)),
    ('{"ranking": "3 > 1 > 2"}', (0.5, 0.0, 1.0)),
    (r"So \boxed{3 > 1 > 2}", (0.5, 0.0, 1.0)),
    ("<think>Ranking: 1 > 2 > 3</think>Ranking: 3 > 1 > 2", (0.5, 0.0, 1.0)),
]
REFUSED = [
    ("", "empty reply"),
    ("I like the third best, then the first.", "last line is not a ranking line"),
    ("Ranking: 3 > 1", "leaves out answer 2"),
    ("Ranking: 3", "leaves out answer 1"),
    ("Ranking: 3 > 1 > 1", "names answer 1 twice"),
    ("Ranking: 3 > 1 > 2 > 3", "names answer 3 twice"),
    ("Ranking: 3 > 1 > 4", "names answer 4, and 3 were shown"),
    ("Ranking: 0 > 1 > 2", "names answer 0, and 3 were shown"),
    ("Ranking: 3 < 1 < 2", "not a list of answers"),
    ("Ranking: 3 > 1, 2", "not a list of answers"),
    ("Ranking: 3 >= 1 > 2", "not a list of answers"),
    ("Ranking: C > A > B", "not a list of answers"),
    ("Ranking: 3 > 1 > …", "not a list of answers"),
    ("Ranking: 3 > 1 > 2 (all close)", "not a list of answers"),
    ("Ranking: 3 1 2", "not a list of answers"),
    ("Ranking: 3.5 > 1 > 2", "not a list of answers"),
    ("Ranking: 3 > 1 > 2\nRanking: 1 > 3 > 2", "contradict each other"),
    ("Ranking: 3 > 1 > 2\nBut answer 1 is close.", "last line is not a ranking line"),
    ('{"ranking": [[3], [1], [2]]}', "last line is not a ranking line"),
    ('{"ranking": [3, 1]}', "leaves out answer 2"),
    ('{"ranking": {"1": 3}}', "not a list of answers"),
    ("<think>3 > 1 > 2", "the reasoning does not end"),
]


@pytest.mark.parametrize(("text", "scores"), READ)
def test_read(text, scores):
    assert parse_ranking(text, 3) == pytest.approx(scores)


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refused(text, reason):
    found = parse_ranking(text, 3)
    assert isinstance(found, UnreadableReply)
    assert reason in found.reason


@given(st.permutations(range(1, 8)), st.data())
def test_every_ranking_that_is_written_is_read_back(order, data):
    signs = [data.draw(st.sampled_from("=>")) for _ in order[1:]]
    written = str(order[0]) + "".join(f" {sign} {number}" for sign, number in zip(signs, order[1:], strict=True))
    scores = parse_ranking(f"Fine.\nRanking: {written}", 7)
    assert sum(scores) == pytest.approx(7 / 2)
    for place, sign in enumerate(signs):
        better, worse = scores[order[place] - 1], scores[order[place + 1] - 1]
        assert better == worse if sign == "=" else better > worse


@given(st.text(max_size=60))
def test_no_text_breaks_it(text):
    found = parse_ranking(f"Ranking: {text}", 3)
    assert isinstance(found, UnreadableReply) or sum(found) == pytest.approx(1.5)


def test_a_long_reply_is_read_in_no_time():
    assert isinstance(parse_ranking("Ranking: " + " > ".join(["7"] * 100_000), 3), UnreadableReply)


def test_all_answers_and_the_user_stand_in_the_prompt():
    view = ListView("Which tea?", ("Sencha.", "Assam.", "Mint."), (Post(id="1", text="I sleep badly."),), ("Brief",))
    for file in ("rank.jinja", "judge_list.jinja"):
        template = Template.builtin(file, "rank")
        shown = template.render(view)
        for text in ("Which tea?", "Sencha.", "Assam.", "Mint.", "I sleep badly.", "Brief"):
            assert shown.count(text) == 1, (file, text)
        assert sorted(template.reads) == ["plan", "posts"]
    assert "<<< ANSWER 3\nMint.\nANSWER 3 >>>" in Template.builtin("rank.jinja", "rank").render(view)


def test_a_template_without_the_answers_is_refused():
    with pytest.raises(TemplateError, match=r"no slot {{ answers }}"):
        Template("{{ question }}", "rank")
