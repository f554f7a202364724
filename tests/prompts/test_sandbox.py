"""Templates are data: plain values in, bounded text out, nothing called."""

import pickle
import time
from collections.abc import Mapping

import pytest

from prbench.errors import TemplateError
from prbench.prompts import Template
from prbench.prompts import template as templates
from prbench.prompts.sandbox import MOST_CHARACTERS, plain
from prbench.types import AnswerView, PairView, Post

POSTS = (Post(id="1", text="I like tea."), Post(id="2", text="And quiet.", category="food"))
VIEW = AnswerView("Which tea?", "Green.", POSTS, ("brief",))


def fill(source: str) -> str:
    return Template("{{ question }}{{ answer }}" + source, "rate").render(VIEW)


class Bomb:
    """Leaves a mark where it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("method", ["parse_raw", "model_validate_json", "parse_file", "model_construct", "copy"])
def test_no_method_of_a_model_can_be_reached(tmp_path, method):
    mark = tmp_path / "mark"
    payload = pickle.dumps(Bomb(str(mark)), protocol=0).decode("latin-1")
    source = f"{{{{ posts[0].{method}({payload!r}, proto='pickle', allow_pickle=true) }}}}"
    with pytest.raises(TemplateError):
        fill(source)
    assert not mark.exists()


@pytest.mark.parametrize(
    "source",
    [
        "{{ question.__class__ }}",
        "{{ question['__class__'] }}",
        "{{ posts[0].__class__.__mro__ }}",
        "{{ posts | map(attribute='__class__') | list | join }}",
        "{{ question | attr('__class__') }}",
        "{{ posts.__init__.__globals__ }}",
        "{{ question.format(1) }}",
        "{{ '%s' % question }}",
        "{{ '{0.__class__}' | format(question) }}",
        "{{ loop.__init__ }}",
        "{% for post in posts %}{{ loop.__init__ }}{% endfor %}",
        "{% for post in posts %}{{ loop._iterator }}{% endfor %}",
        "{{ self }}",
        "{{ self._TemplateReference__context }}",
        "{{ range(3) }}",
        "{{ dict() }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{% macro m() %}x{% endmacro %}{{ m() }}",
        "{% include 'x' %}",
        "{% import 'x' as x %}",
        "{% extends 'x' %}",
        "{% block x %}{% endblock %}",
        "{% filter upper %}x{% endfilter %}",
        "{% set x %}{{ question }}{% endset %}",
        "{% set a, b = plan %}",
        "{{ posts }}",
        "{{ [question, question] | join }}",
        "{{ question | random }}",
        "{{ question | pprint }}",
        "{% autoescape true %}{% endautoescape %}",
        "{% do posts %}",
        "{% for post in posts recursive %}{{ loop(posts) }}{% endfor %}",
    ],
)
def test_what_a_template_may_not_do_is_refused(source):
    with pytest.raises(TemplateError):
        fill(source)


def loops(depth: int) -> str:
    inside = "x"
    for _ in range(depth):
        inside = f"{{% for letter in answer %}}{inside}{{% endfor %}}"
    return inside


ADDED_FOR_EVER = "{% for x in answer %}{% for y in answer %}{% set b = a + question %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10**10 }}",
        "{{ 'a' * 1000000 }}",
        "{{ 10**10**10 }}",
        "{{ 9 ** 9 ** 9 ** 9 }}",
        "{{ [1] * 1000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ 'a' | indent(1000000000, true) }}",
        "{{ ('a' | indent(width='a' * 100)) }}",
        "{{ 'a\na' | indent(width=1000000000) }}",
        "{{ (1 | string | list) | slice(1000000000) | list }}",
        "{% set a = 'aaaaaaaa' %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}",
        "{% set a = 'aaaaaaaa' %}" + "{% set a = a + a %}" * 60 + "{{ a }}",
        "{% set a = 'aaaaaaaa' %}" + "{% set a = a | replace('a', a) %}" * 20 + "{{ a }}",
        "{% set a = 'aaaaaaaa' %}" + "{% set a = a | list | join(a) %}" * 20 + "{{ a }}",
        "{% set a = 9 %}" + "{% set a = a * a %}" * 60 + "{{ a }}",
        "{% set a = 1 %}" + "{% set a = [a, a] %}" * 60 + "{{ a }}",
        "{{ 1 | round(1000000000) }}",
        "{{ 12345 | round(-1000000000) }}",
        "{{ 1.5 | round(precision=1000000000, method='ceil') }}",
        "{% set a = 'aaaaaaaaaa' %}" + "{% set a = a + a %}" * 19 + ADDED_FOR_EVER,
        loops(12),
        "{% for a in answer %}" * 4 + "{{ question | list | join | upper }}" + "{% endfor %}" * 4 + loops(8),
    ],
)
def test_what_would_grow_or_never_end_is_refused_at_once(source):
    began = time.process_time()
    with pytest.raises(TemplateError):
        fill(source)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + "-" * 20_000 + "1 }}",
        "{% for x in answer %}" * 30 + "{% endfor %}" * 30,
        "{{ " + "9" * 5000 + " }}",
    ],
    ids=["parentheses", "minus", "loops", "digits"],
)
def test_what_python_cannot_compile_is_a_mistake_in_the_template(source):
    with pytest.raises(TemplateError, match="template <template>"):
        fill(source)


def test_a_text_that_is_written_in_pieces_is_bounded():
    view = AnswerView("Tea?", "a" * 1000, (Post(id="1", text="b" * (MOST_CHARACTERS // 100)),))
    template = Template("{{ question }}{% for x in answer %}{{ posts[0].text }}{% endfor %}", "rate")
    with pytest.raises(TemplateError, match="more than 10,000,000 characters"):
        template.render(view)


def test_what_templates_need_still_works():
    source = (
        "{% for post in posts %}[{{ loop.index }}/{{ loop.length }}] {{ post.text | trim | upper }}"
        "{% if not loop.last %}; {% endif %}{% endfor %}|{{ posts | length }}"
        "|{{ posts | map(attribute='text') | join(' ') }}"
        "|{{ plan | join(', ') }}|{{ 'food' if posts[1].category == 'food' else '' }}|{{ 'a' ~ 1 ~ plan[0] }}"
        "|{{ posts[-1].text[:3] }}|{% set n = posts | length + 1 %}{{ n * 2 }}|{{ question | replace('tea', 'milk') }}"
        "|{{ 'x' in ['x', 'y'] }}|{{ posts | selectattr('category') | map(attribute='id') | list | join }}"
    )
    assert fill(source) == (
        "Which tea?Green.[1/2] I LIKE TEA.; [2/2] AND QUIET.|2|I like tea. And quiet.|brief|food|a1brief|And|6"
        "|Which milk?|True|2"
    )


def reachable(value: object, seen: set[int]) -> set[type]:
    """Types of everything that can be had from a value by its items."""
    if id(value) in seen:
        return set()
    seen.add(id(value))
    found = {type(value)}
    if isinstance(value, Mapping):
        for key, one in value.items():
            found |= reachable(key, seen) | reachable(one, seen)
    elif isinstance(value, (tuple, list)):
        for one in value:
            found |= reachable(one, seen)
    return found


@pytest.mark.parametrize("view", [VIEW, PairView("Tea?", "Green.", "Black.", POSTS, ("brief",))])
def test_everything_reachable_from_the_variables_is_plain(view, monkeypatch):
    """Walks what `render` really hands over, not what it should."""
    given = {}
    monkeypatch.setattr(templates, "write", lambda compiled, slots: given.update(slots) or "")
    slots = "".join(f"{{{{ {name} }}}}" for name in view.__dataclass_fields__ if name not in ("turns", "user"))
    Template(slots, "rate" if isinstance(view, AnswerView) else "compare").render(view)
    assert {"question", "posts", "plan"} <= given.keys()
    assert reachable(given, set()) <= {str, int, float, bool, type(None), tuple, dict}


def test_an_object_is_never_handed_over():
    with pytest.raises(TypeError, match="cannot be given"):
        plain(object())
