"""What a newcomer meets: config files, grouped help, completion, missing extras, exit codes, installed packages."""

import json
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import prbench
from prbench.cli import app, main
from prbench.cli.doctor import examine
from prbench.data import load_pairs, suites, write_pairs
from prbench.errors import EXTRAS, ConfigError, MissingExtraError
from prbench.models import load_model
from small_suite import mirrored

ROOT = Path(prbench.__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_pairs(mirrored(), tmp_path / "pairs.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def prb(*arguments, code=0):
    found = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert found.exit_code == code, found.output
    return found


def test_a_run_can_be_repeated_from_the_file_that_it_wrote(folder):
    prb("run", "-m", "longer", "-s", "pairs.jsonl", "-c", "none", "--resamples", "100", "--one-order", "-o", "one")
    prb("run", "--config", "one/config.toml", "-o", "two")
    one, two = (tomllib.loads((folder / name / "config.toml").read_text()) for name in ("one", "two"))
    assert one == two
    prb("run", "--config", "one/config.toml", "-m", "shorter", "-o", "three")  # what is typed goes before
    assert tomllib.loads((folder / "three" / "config.toml").read_text())["model"] == "shorter"


def test_a_config_file_with_an_unknown_name_is_refused(folder):
    (folder / "run.toml").write_text('model = "longer"\nsuit = "pairs.jsonl"\n')
    with pytest.raises(ConfigError, match="did you mean 'suite'"):
        prb("run", "--config", "run.toml")


def test_help_is_grouped_and_completion_is_there():
    text = prb("run", "--help").output
    places = [text.index(word) for word in ("--model", "Judges and endpoints", "Data", "Tuning", "--batch-tokens")]
    assert places[0] == min(places)
    assert text.index("Tuning") < text.index("--batch-tokens")
    assert "--install-completion" in prb("--help").output


def test_the_extras_are_those_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {
        name: {line.partition(">")[0].partition("[")[0].replace("-", "_") for line in lines}
        for name, lines in declared.items()
    }
    assert {name: set(packages) for name, packages in EXTRAS.items()} == names
    assert [row[0] for row in examine() if row[0].startswith("extra")] == [f"extra {name!r}" for name in EXTRAS]


def test_every_missing_package_gives_the_same_hint(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in list(sys.modules):
        if name.startswith(("prbench.models.personal.", "prbench.api.callback", "prbench.train")):
            monkeypatch.delitem(sys.modules, name)
    for thing in (lambda: load_model("personal:reference"), lambda: prbench.PersonalRewardCallback):
        with pytest.raises(MissingExtraError, match=r"in a clone pip install -e '.\[hf\]'"):
            thing()
    monkeypatch.setattr(sys, "argv", ["prbench", "train", "bt", "-o", "model"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "prbench train needs the optional dependencies of 'train'" in capsys.readouterr().err


def test_a_run_without_a_single_verdict_fails_with_the_reason(folder):
    (folder / "mute_model.py").write_text("def score(question, answer):\n    return float('nan')\n")
    found = prb("run", "-m", "py:mute_model:score", "-s", "pairs.jsonl", "-c", "none", "--resamples", "100", code=1)
    assert "no verdict in 36 records; 36 times: " in found.stderr


def test_a_suite_without_profiles_other_users_or_many_pairs_says_so(folder):
    write_pairs([pair.model_copy(update={"tags": {}}) for pair in mirrored()[:3]], folder / "one.jsonl")
    (folder / "words.py").write_text("def score(question, answer, posts):\n    return len(answer)\n")
    said = prb("run", "-m", "py:words:score", "-s", "one.jsonl", "--resamples", "100").stderr
    assert "'u0a' is the only user there, so there is no other user to show under 'other'" in said
    assert "only 3 pairs: an accuracy is uncertain by about ±50 points" in said
    rows = [{"question": pair.question, "chosen": pair.chosen, "rejected": pair.rejected} for pair in mirrored()]
    (folder / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:6]))
    said = prb("run", "-m", "py:words:score", "-s", "bare.jsonl", "--resamples", "100").stderr
    assert "the suite has no profiles, so nothing of the user can be shown" in said


def test_a_local_model_is_one_whatever_its_spelling(folder, tiny_reward_model):
    (folder / "rm").symlink_to(tiny_reward_model)
    cards = [load_model(address).card for address in ("hf:rm", "hf:./rm", f"hf:{folder}/rm", "hf:rm/")]
    assert {card.address for card in cards} == {"hf:rm"}
    assert all(card.identity == cards[0].identity for card in cards)


def test_suites_and_methods_of_an_installed_package_are_found(folder, monkeypatch):
    """A toy distribution: its metadata and a module, as pip would have laid them down."""
    site = folder / "site"
    (site / "toy-1.0.dist-info").mkdir(parents=True)
    (site / "toy-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (site / "toy-1.0.dist-info" / "entry_points.txt").write_text(
        "[prbench.suites]\ntoy-pairs = toy_prbench:pairs\n[prbench.methods]\ntoy-bt = toy_prbench:Method\n"
        "[prbench.models]\ntoy = toy_prbench:load\n"
    )
    (site / "toy_prbench.py").write_text(
        "from pathlib import Path\n"
        "from prbench.models.personal.bt import BradleyTerry as Method\n"
        "from prbench.models import load_model\n"
        f"def pairs():\n    return Path({str(folder / 'pairs.jsonl')!r})\n"
        "def load(rest, options):\n    return load_model('longer')\n"
    )
    monkeypatch.syspath_prepend(str(site))
    assert len(load_pairs("toy-pairs")) == 36
    assert "toy-pairs" in [suite.name for suite in suites()]
    assert load_model("toy:x").card.address == "longer"
    from prbench.models.personal.method import Width, make

    assert type(make("toy-bt", Width(3, 6), {}, seed=0)).__name__ == "BradleyTerry"
