"""A prompt that does not show what decides is refused before anything is asked."""

import pytest

from fake_server import FakeServer
from prbench import evaluate
from prbench.config import ModelOptions
from prbench.contexts import check_prompts
from prbench.errors import TemplateError
from prbench.models import load_model
from prbench.types import Context

WHOLE = "{{ question }}{% for post in posts %}{{ post.text }}{% endfor %}{{ first }}{{ second }}"


@pytest.mark.parametrize(
    ("slot", "said"),
    [("{{ first }}", "first answer"), ("{{ second }}", "second answer"), ("{{ question }}", "question")],
)
def test_a_comparer_that_is_not_shown_the_slot_is_refused(tmp_path, slot, said):
    template = tmp_path / "compare.jinja"
    template.write_text(WHOLE.replace(slot, "{% if false %}" + slot + "{% endif %}"))
    model = load_model("chat:m@http://127.0.0.1:9/v1", ModelOptions(template=template))
    with pytest.raises(TemplateError, match=f"does not depend on the {said}"):
        check_prompts(model, Context.parse("none"), template)


def test_run_refuses_a_template_that_hides_the_posts_and_asks_nothing(tmp_path):
    template = tmp_path / "compare.jinja"
    template.write_text(WHOLE.replace("{{ post.text }}", ""))
    with FakeServer() as server:
        address, options = f"chat:m@{server.url}", {"options": ModelOptions(template=template)}
        with pytest.raises(TemplateError, match=r"compare\.jinja.*does not depend on the posts"):
            evaluate(address, "mirror", contexts=["none", "profile"], limit=2, **options)
        assert not server.requests
