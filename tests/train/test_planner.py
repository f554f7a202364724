"""A planner is trained, kept, continued and opened again: on a tiny language model and users with a planted taste."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tiny_models
from pair_factory import make_pair
from prbench.config import ModelOptions
from prbench.errors import AddressError, DataError, ModelError, RunError
from prbench.models.local.lm import load_generator
from prbench.models.registry import load_model
from prbench.plan import Matcher, Planner, hold, needs_of, read_plan, summarise
from prbench.train.packs import TokenExample, groups, pack, target_losses
from prbench.train.planner import train_planner
from prbench.train.planner_training import PlannerConfig
from prbench.types import Aspect, Pair, Post
from split_suite import write_suite
from word_encoder import WordEncoder

TOPICS = {
    "train": ("tea", "boots", "bread", "chess", "rent", "soup"),
    "validation": ("maps", "yarn"),
    "test": ("bees",),
}
TITLES = {"train": "wants it {}", "validation": "it is {}", "test": "it be {}"}
"""A planner must not have seen the words it is measured by, so each split says the same in its own."""


def planted(split: str, users: int) -> list[Pair]:
    """Users whose only post names a colour, and whose one expectation is that colour."""
    return [
        make_pair(
            id=f"{split}-{number}-{topic}",
            user=f"{split}-{number}",
            question=f"{split} {topic}?",
            profile=(Post(id="1", text=f"{split} {number} likes {('red', 'blue')[number % 2]}"),),
            rubric_aspects=(Aspect(aspect=TITLES[split].format(("red", "blue")[number % 2])),),
            chosen=f"{split} {topic} {number} yes",
            rejected=f"{split} {topic} {number} no",
            tags={"split": split},
        )
        for number in range(users)
        for topic in TOPICS[split]
    ]


def everyone() -> list[Pair]:
    return [pair for split, users in (("train", 8), ("validation", 6), ("test", 2)) for pair in planted(split, users)]


def word_model(folder: Path, seed: int = 0) -> Path:
    """A tiny language model whose tokens are words, so that a whole prompt is short."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

    from prbench.prompts import Template
    from prbench.types import PairView

    template = Template.builtin("plan.jinja", "plan")
    texts = [template.render(PairView(pair.question, "", "", pair.profile)) for pair in everyone()]
    texts += [f"- {pair.rubric_aspects[0].aspect}" for pair in everyone()]
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<s>", "</s>", "<|user|>", "<|assistant|>", "<unk>"]
    core.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=special, show_progress=False))
    words = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )
    words.chat_template = tiny_models.CHAT_TEMPLATE.replace("{{ eos_token }}", " {{ eos_token }} ").replace("|>", "|> ")
    torch.manual_seed(seed)
    config = tiny_models.llama_config(len(words), hidden_size=64, initializer_range=0.2)
    LlamaForCausalLM(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return word_model(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return write_suite(tmp_path_factory.mktemp("suite") / "pairs.jsonl", everyone())


def options(base, **given):
    settings = {"learning_rate": 0.02, "steps": 40, "look_every": 10, "batch": 6, "window": 512, "warmup": 5}
    return PlannerConfig.model_validate({"policy": f"lm:{base}", "dropout": 0.0, **settings, **given})


@pytest.fixture(scope="module")
def trained(base, suite, tmp_path_factory):
    out = tmp_path_factory.mktemp("planner")
    return out, train_planner(options(base), out, suite=str(suite))


def plans(address, pairs):
    planner = Planner(load_generator(address.removeprefix("lm:"), ModelOptions()))
    asked = {planner.key(pair): planner.prompt(pair) for pair in pairs}
    made = {key: read_plan(key, outcome) for key, outcome in planner.ask(asked)}
    return {need.id: made[planner.key(need.pair)] for need in needs_of(pairs)}


def quality(address, pairs):
    needs = needs_of(pairs)
    return summarise(hold(needs, plans(address, pairs), Matcher(WordEncoder(), 0.5), needs), resamples=100)


def test_a_planner_learns_a_planted_taste_and_keeps_it_for_users_it_never_met(base, trained):
    out, record = trained
    held = planted("validation", 6)
    before, after = quality(f"lm:{base}", held), quality(f"lm:{out}", held)
    assert before.strict["recall"].value <= 0.2
    assert after.own["recall"].value == 1.0
    assert after.other["recall"].value == 0.0  # it plans for the user, not for everybody
    assert record.best.validation_loss < record.looks[0].validation_loss
    assert (record.examples, record.users, record.questions, record.aspects) == (48, 8, 6, 2)


def test_saved_and_opened_again_it_writes_the_same_in_another_process(base, trained, suite, tmp_path):
    out, _ = trained
    held = planted("validation", 2)
    here = {need: plan.raw for need, plan in plans(f"lm:{out}", held).items()}
    code = (
        "import json, sys; sys.path[:0] = json.loads(sys.argv[2])\n"
        "from test_planner import plans, planted\n"
        "print(json.dumps({k: p.raw for k, p in plans('lm:' + sys.argv[1], planted('validation', 2)).items()}))"
    )
    places = json.dumps([str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")])
    there = subprocess.run([sys.executable, "-c", code, str(out), places], capture_output=True, text=True, check=False)
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout.splitlines()[-1]) == here
    cards = [load_model(f"lm:{place}#loglik").card for place in (out, base)]
    assert cards[0].revision != cards[1].revision


def test_killed_and_continued_it_ends_with_the_same_weights(base, suite, tmp_path):
    short = options(base, steps=6, look_every=2, dropout=0.3).model_dump_json()
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from prbench.train.planner_training import PlannerConfig, PlannerTraining\n"
        "from prbench.train.planner import train_planner\n"
        "step = PlannerTraining._one_step\n"
        "def deadly(self, one):\n"
        "    if self.step == int(sys.argv[4]): os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return step(self, one)\n"
        "PlannerTraining._one_step = deadly\n"
        "train_planner(PlannerConfig.model_validate_json(sys.argv[1]), Path(sys.argv[2]), suite=sys.argv[3])"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code, short, str(tmp_path / "killed"), str(suite), "3"], env={**os.environ}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / "adapter_base.json").exists()
    whole = train_planner(PlannerConfig.model_validate_json(short), tmp_path / "whole", suite=str(suite))
    rest = train_planner(PlannerConfig.model_validate_json(short), tmp_path / "killed", suite=str(suite))
    assert rest == whole
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_another_training_is_not_continued_in_its_folder(base, suite, trained):
    with pytest.raises(RunError, match="holds another training"):
        train_planner(options(base, seed=1), trained[0], suite=str(suite))


def test_an_adapter_on_another_base_is_refused(base, trained, tmp_path):
    out = tmp_path / "moved"
    out.mkdir()
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        (out / name).write_bytes((trained[0] / name).read_bytes())
    with pytest.raises(ModelError, match="holds an adapter, not a whole model"):
        load_generator(str(out), ModelOptions())
    record = json.loads((trained[0] / "adapter_base.json").read_text())
    other = word_model(tmp_path / "other", seed=1)
    (out / "adapter_base.json").write_text(json.dumps({**record, "base": f"lm:{other}"}))
    with pytest.raises(ModelError, match="the adapter was trained on"):
        load_generator(str(out), ModelOptions())


def test_what_it_may_not_learn_from_is_refused(base, tmp_path):
    pairs = everyone()
    leaking = [
        pair.model_copy(update={"rubric_aspects": (Aspect(aspect="Wants it: RED!"),)})
        if pair.id == "test-0-bees"
        else pair
        for pair in pairs
    ]
    with pytest.raises(DataError, match=r"1 aspects of the test split .* 'Wants it: RED!'"):
        train_planner(options(base), tmp_path / "a", suite=str(write_suite(tmp_path / "leak.jsonl", leaking)))
    known = [pair.model_copy(update={"question": "train tea?"}) if pair.id == "test-0-bees" else pair for pair in pairs]
    with pytest.raises(DataError, match="of the test split is in the training split too"):
        train_planner(options(base), tmp_path / "a", suite=str(write_suite(tmp_path / "known.jsonl", known)))
    bare = [pair.model_copy(update={"rubric_aspects": ()}) for pair in pairs]
    with pytest.raises(DataError, match="nothing to plan from or to learn"):
        train_planner(options(base), tmp_path / "a", suite=str(write_suite(tmp_path / "bare.jsonl", bare)))
    with pytest.raises(AddressError, match="cannot be trained from 'chat:x'"):
        train_planner(
            PlannerConfig(policy="chat:x"), tmp_path / "a", suite=str(write_suite(tmp_path / "fine.jsonl", pairs))
        )
    assert not (tmp_path / "a" / "adapter_base.json").exists()


@pytest.mark.parametrize("shared", [0, 1, 5])
def test_packed_examples_have_the_loss_and_the_gradient_of_examples_one_by_one(base, shared):
    from transformers import AutoModelForCausalLM

    draw = torch.Generator().manual_seed(shared)
    start = torch.randint(5, 40, (shared,), generator=draw).tolist()
    examples = [
        TokenExample((*start, number, *torch.randint(5, 40, (4 + number,), generator=draw).tolist()), shared + 3)
        for number in range(3)
    ]
    model = AutoModelForCausalLM.from_pretrained(base)
    found = target_losses(model, pack(examples))
    found.total.backward()
    together = [weight.grad.clone() for weight in model.parameters()]
    model.zero_grad()
    apart = torch.zeros(())
    for example in examples:
        ids = torch.tensor([example.ids])
        logits = model(input_ids=ids).logits[0, example.target - 1 : -1]
        apart = apart + torch.nn.functional.cross_entropy(logits, ids[0, example.target :], reduction="sum")
    apart.backward()
    assert found.tokens == sum(len(example.ids) - example.target for example in examples)
    torch.testing.assert_close(found.total, apart, rtol=1e-5, atol=1e-5)
    for one, two in zip(together, (weight.grad for weight in model.parameters()), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)
    model.zero_grad()
    short = target_losses(model, pack(examples), through=False)
    torch.testing.assert_close(short.total, apart, rtol=1e-5, atol=1e-5)


def test_an_epoch_has_every_example_once_and_a_group_has_one_user():
    owners = ["ann"] * 5 + ["bob"] * 5
    epoch = groups(owners, 3, seed="0:0")
    assert sorted(place for group in epoch for place in group) == list(range(10))
    assert all(len({owners[place] for place in group}) == 1 for group in epoch)
    assert [len(group) for group in groups(owners, 3)] == [3, 2, 3, 2]
    assert epoch != groups(owners, 3, seed="0:1")
    assert epoch == groups(owners, 3, seed="0:0")


def test_a_question_that_leaves_no_room_for_a_post_is_left_out_and_counted(base, tmp_path):
    pairs = everyone()
    long = pairs[0].model_copy(
        update={"id": "long", "question": "train " + "tea " * 600, "chosen": "a", "rejected": "b"}
    )
    out = tmp_path / "planner"
    record = train_planner(options(base, steps=1), out, suite=str(write_suite(tmp_path / "long.jsonl", [*pairs, long])))
    assert (record.left_out, record.examples) == (1, 48)
