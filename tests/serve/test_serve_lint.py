"""A model that cannot see what it pays for is refused before the first request."""

import pytest

import tiny_models
from prbench.config import ModelOptions
from prbench.data import Suite
from prbench.errors import ConfigError, ModelError, TemplateError
from prbench.models import load_model
from prbench.serve import serving
from prbench.serve.config import ServeConfig
from prbench.serve.lint import check_servable
from prbench.types import Context, Message, Prompt
from serve_models import Recorder
from small_suite import Spy, SpyComparer

PROFILE, NONE = Context.parse("profile"), Context.parse("none")


class Blind(Recorder):
    """Does not show its model one thing."""

    def __init__(self, slot):
        super().__init__()
        self.slot = slot

    def render(self, view):
        slots = {"answer": view.answer, "question": view.question, "posts": view.posts, "plan": view.plan}
        return Prompt(tuple(Message(name, str(value)) for name, value in slots.items() if name != self.slot))


@pytest.mark.parametrize("slot", ["answer", "question", "posts"])
def test_a_model_that_is_not_shown_the_slot_is_refused(slot):
    with pytest.raises(TemplateError, match=f"'recorder' gives the model does not depend on the {slot}"):
        check_servable(Blind(slot), PROFILE)
    check_servable(Blind("plan"), PROFILE)  # which this context does not show
    if slot == "posts":
        check_servable(Blind(slot), NONE)


def test_the_server_does_not_start(start):
    with pytest.raises(TemplateError, match="does not depend on the answer"), start(Blind("answer")):
        pass


@pytest.mark.parametrize(
    "dead", ["{% if false %}{{ answer }}{% endif %}", "{{ answer[:0] }}", "{{ answer | length > 0 }}"]
)
def test_a_template_that_names_the_answer_but_does_not_show_it_is_refused(tmp_path, dead):
    """Such a template has the slot, and passes where only names are looked for."""
    template = tmp_path / "reward.jinja"
    template.write_text("{{ question }}{% for post in posts %}{{ post.text }}{% endfor %}" + dead)
    model = load_model("chat:m@http://127.0.0.1:9/v1#rate", ModelOptions(template=template))
    with pytest.raises(TemplateError, match=r"reward\.jinja.*does not depend on the answer"):
        check_servable(model, PROFILE, template)
    template.write_text("{{ question }}{% for post in posts %}{{ post.text }}{% endfor %}{{ answer }}")
    check_servable(load_model("chat:m@http://127.0.0.1:9/v1#rate", ModelOptions(template=template)), PROFILE)


def test_a_template_without_the_slot_is_refused(tmp_path):
    template = tmp_path / "reward.jinja"
    template.write_text("{{ question }} {{ posts }}")
    with pytest.raises(TemplateError, match=r"no slot \{\{ answer \}\}"):
        load_model("chat:m@http://127.0.0.1:9/v1#rate", ModelOptions(template=template))


def test_a_tokenizer_that_drops_the_answer_is_refused(tmp_path):
    """The prompt holds the answer, the chat template of the tokenizer does not render it."""
    deaf = (
        "{% for message in messages %}{% if message['role'] == 'user' %}{{ message['content'] }}{% endif %}{% endfor %}"
    )
    folder = tiny_models.save_reward_model(tmp_path / "rm", chat_template=deaf)
    with pytest.raises((TemplateError, ModelError), match="answer"):
        check_servable(load_model(f"hf:{folder}"), PROFILE)


@pytest.mark.parametrize("address", ["random", "longer", "shorter", "overlap"])
def test_baselines_can_be_served_without_a_user(address):
    check_servable(load_model(address), NONE)
    with pytest.raises(ConfigError, match="does not read posts") as caught:
        check_servable(load_model(address), PROFILE)
    assert "--context none" in caught.value.hint


def test_real_weights_pass(tiny_reward_model):
    check_servable(load_model(f"hf:{tiny_reward_model}"), PROFILE)
    check_servable(Spy(), PROFILE)


def test_a_comparer_is_refused_with_a_way_out():
    with pytest.raises(ModelError, match="compares two answers") as caught:
        check_servable(SpyComparer(), PROFILE)
    assert "#rate" in caught.value.hint


def test_a_network_is_not_opened_by_mistake(monkeypatch):
    with pytest.raises(ConfigError, match="can be reached from other machines") as caught:
        ServeConfig.of(model="longer", host="0.0.0.0")
    assert "--token-env" in caught.value.hint
    assert ServeConfig.of(model="longer", host="0.0.0.0", insecure=True).token is None
    with pytest.raises(ConfigError, match="holds no token"):
        ServeConfig.of(model="longer", host="0.0.0.0", token_env="REWARD_TOKEN")
    monkeypatch.setenv("REWARD_TOKEN", "s3cret")
    assert ServeConfig.of(model="longer", host="0.0.0.0", token_env="REWARD_TOKEN").token == "s3cret"
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        assert ServeConfig.of(model="longer", host=host).loopback


def test_a_network_is_not_opened_by_a_configuration_made_in_another_way(tmp_path):
    config = ServeConfig(model="longer", context="none", host="0.0.0.0", port=0, state=tmp_path / "judged.jsonl")
    with pytest.raises(ConfigError, match="can be reached from other machines"), serving(config, suite=Suite.of([])):
        pass


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="max_batch is 0"):
        ServeConfig.of(model="longer", max_batch=0)
