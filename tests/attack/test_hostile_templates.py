"""Templates of a stranger, by mutation: each is filled or refused in words, soon, and nothing is opened or run."""

import random
import re
import sys
import time
from importlib.resources import files
from typing import Any

import pytest

from campaigns import Campaign, times, told
from prbench.errors import TemplateError
from prbench.prompts import Template
from prbench.prompts.sandbox import MOST_CHARACTERS
from prbench.types import AnswerView, PairView, Post

SEED = 14
TEMPLATES = times(3000)
SLOWEST_S = 10.0
POSTS = tuple(Post(id=str(n), text=f"I like tea number {n}. " * 20, category="food") for n in range(40))
VIEWS = {
    "rate": AnswerView("Which tea?", "Green. " * 50, POSTS, ("brief", "warm")),
    "compare": PairView("Which tea?", "Green.", "Black. " * 50, POSTS, ("brief",)),
}
SLOTS = {"rate": "{{ question }}{{ answer }}", "compare": "{{ question }}{{ first }}{{ second }}"}
FRAGMENTS = [
    *("{{ question.__class__.__mro__[1].__subclasses__() }}", "{{ posts[0].parse_file('/etc/passwd') }}"),
    *("{{ posts[0]['__class__'] }}", "{{ ''['__class__']['__base__'] }}", "{{ question | attr('__class__') }}"),
    *("{{ self.__init__.__globals__ }}", "{{ loop.__init__ }}", "{{ cycler.__init__.__globals__.os.system('id') }}"),
    *("{{ '%s%s' % (question, posts) }}", "{{ '{0.__class__}'.format(question) }}", "{{ question | format(1) }}"),
    *(
        "{{ 'a' * 10**10 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ [1] * 10**9 }}",
        "{{ 'a' | center(10**9) }}",
        "{{ 2 ** 255 * 2 }}",
    ),
    *("{% set a = 'aaaaaaaa' %}", "{% set a = a ~ a %}", "{% set a = a + a %}", "{% set a = a | replace('a', a) %}"),
    *("{% for x in answer %}", "{% for x in posts %}", "{% for x in question %}", "{% endfor %}", "{% else %}"),
    *("{% for k, v in posts[0] | items %}{{ k }}{{ v }}{% endfor %}", "{{ loop.index ** loop.length }}"),
    *("{% if posts %}", "{% endif %}", "{% with a = posts %}", "{% endwith %}", "{{ a }}", "{{ x }}", "{{ x.text }}"),
    *("{{ posts | map(attribute='text') | join(question) | upper }}", "{{ posts | sort(attribute='id') | list }}"),
    *("{{ posts | selectattr('text', 'equalto', a) | list | length }}", "{{ plan | map('upper') | join }}"),
    *("{{ plan | map('indent', 80) | join('\n') }}", "{{ question | truncate(10**9, true, '', 0) }}"),
    *(
        "{{ 1 | round(20, 'ceil') }}",
        "{{ '1e400' | float | int }}",
        "{{ 'ff' | int(0, 16) }}",
        "{{ posts | sum('id') }}",
    ),
    *("{{ posts | unique | list | first }}", "{{ plan | select('divisibleby', 0) | list }}", "{{ plan | max }}"),
    *("{% macro m() %}x{% endmacro %}", "{% include 'x' %}", "{% import 'os' as os %}", "{% extends 'x' %}"),
    *("{% block b %}{% endblock %}", "{% filter upper %}x{% endfilter %}", "{% set x %}y{% endset %}", "{% raw %}"),
    *("{{ question[::-1] }}", "{{ question[10**400] }}", "{{ posts[-1:][0].text[2:5] }}", "{{ {'a': 1}.a }}"),
    *("{{ caller() }}", "{{ varargs }}", "{{ lipsum }}", "{{ request }}", "{{ config }}", "{{ range(10**9) }}"),
    *("{{ question is callable }}", "{{ 1 is in(posts) }}", "{{ question if a is defined else plan }}", "{# #}"),
    *(
        "{{ -question }}",
        "{{ not posts }}",
        "{{ question < 1 }}",
        "{{ 1 / 0 }}",
        "{{ 7 // 2 % 0 }}",
        "{{ 1.0 ** 400 }}",
    ),
]
"""What attackers write, and what honest people do."""
WORDS = [
    *("__class__", "__globals__", "__builtins__", "attribute", "text", "posts", "question", "answer", "plan", "a", "x"),
    *("10**10", "-1", "1e308", "0x10", "'" + "9" * 400 + "'", "none", "true", "loop", "namespace()", "self", "super()"),
    *("upper", "list", "join", "map", "items", "tojson", "xmlattr", "batch", "groupby", "random", "urlize", "attr"),
]


class Watch:
    """What Python tells of files, processes, sockets and imports while a template is filled."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)  # for the rest of the process: a hook cannot be taken off

    def _hear(self, event: str, details: tuple[Any, ...]) -> None:
        if event == "exec" and details[0].co_filename == "<template>":  # Jinja names the line of an error by it
            return
        if self.on and event.startswith(
            ("open", "os.", "subprocess.", "socket.", "pickle.", "import", "exec", "ctypes.")
        ):
            self.seen.append(f"{event} {str(details)[:120]}")


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


def _mutant(chance: random.Random, sound: list[str]) -> str:
    """A template made of fragments and shipped templates, with some of its words and characters changed."""
    parts = chance.choices(FRAGMENTS, k=chance.randint(1, 8))
    if chance.random() < 0.3:
        parts.insert(chance.randrange(len(parts) + 1), chance.choice(sound))
    if chance.random() < 0.2:
        parts *= chance.choice((2, 10, 60))
    source = "".join(parts)
    for _ in range(chance.choice((0, 0, 1, 3, 8))):
        words = list(re.finditer(r"\w+", source))
        if not words:
            break
        old, kind = chance.choice(words), chance.random()
        if kind < 0.6:
            source = source[: old.start()] + chance.choice(WORDS) + source[old.end() :]
        elif kind < 0.8:
            source = source[: old.end()] + f" | {chance.choice(WORDS)}" + source[old.end() :]
        else:
            place = chance.randrange(len(source))
            source = (
                source[:place] + chance.choice("{}%()[]|.'\"\\~*-:\x00\ud800é") + source[place + chance.randint(0, 3) :]
            )
    return source


def _try(campaign: Campaign, what: str, source: str, kind: Any, watch: Watch) -> bool:
    """Fill a template; whether it was filled."""
    began = time.process_time()
    try:
        template = Template(SLOTS[kind] + source, kind)
        watch.on = True
        text = template.render(VIEWS[kind])
        if len(text) > MOST_CHARACTERS:
            campaign.changed.append(f"{what}: {len(text):,} characters")
        return True
    except TemplateError:
        return False
    except Exception as error:
        campaign.tracebacks.append(f"{what}: {told(error)}")
        return False
    finally:
        watch.on = False
        if watch.seen:
            campaign.changed.append(f"{what}: {watch.seen[:3]}")
            watch.seen.clear()
        if (took_s := time.process_time() - began) > SLOWEST_S:
            campaign.changed.append(f"{what}: {took_s:.0f} s")


@pytest.mark.slow
def test_no_template_runs_code_grows_or_goes_on(attack: Any, watch: Watch) -> None:
    shipped = files("prbench.prompts")
    sound = [
        shipped.joinpath(name).read_text(encoding="utf-8") for name in ("rate.jinja", "compare.jinja", "turn.jinja")
    ]
    filled = 0
    with attack("hostile templates") as campaign:
        for number in range(TEMPLATES):
            chance = random.Random(f"{SEED} templates {number}")
            source = _mutant(chance, sound)
            campaign.tried += 1
            filled += _try(campaign, f"{number}: {source[:200]!r}", source, chance.choice(list(VIEWS)), watch)
    assert filled > TEMPLATES / 50  # some do pass: the mutants reach the sandbox's inside
