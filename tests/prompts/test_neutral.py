"""What stands in for a user's words says nothing of the user, and has the same form."""

from prbench.data import load_pairs
from prbench.prompts import Template
from prbench.prompts.neutral import NEUTRAL_PLAN, NEUTRAL_POSTS, as_anybody
from prbench.types import AnswerView, Post

POSTS = (Post(id="1", text="I drink only green tea."),)


def test_only_what_was_shown_is_replaced():
    bare = AnswerView("Tea?", "Green.")
    assert as_anybody(bare) == bare
    shown = as_anybody(AnswerView("Tea?", "Green.", POSTS, ("Strong",), "ann"))
    assert (shown.posts, shown.plan, shown.user) == (NEUTRAL_POSTS, NEUTRAL_PLAN, None)
    assert as_anybody(AnswerView("Tea?", "Green.", plan=("Strong",))).posts == ()


def test_the_turn_keeps_its_form():
    template = Template.builtin("turn.jinja", "turn")
    own = template.render(AnswerView("Tea?", "Green.", POSTS, ("Strong",)))
    anybodys = template.render(as_anybody(AnswerView("Tea?", "Green.", POSTS, ("Strong",))))
    assert own.splitlines()[0] == anybodys.splitlines()[0]
    assert own.splitlines()[-1] == anybodys.splitlines()[-1] == "Tea?"
    assert "green tea" not in anybodys


def test_it_takes_nothing_from_the_embedded_suite():
    rubric = {aspect.aspect for pair in load_pairs("mirror") for aspect in pair.rubric_aspects}
    assert not rubric & set(NEUTRAL_PLAN)
