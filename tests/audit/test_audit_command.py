"""`prbench audit` from the outside, and on the embedded suites."""

import json

import pytest
import typer
from typer.testing import CliRunner

from prbench.audit import audit, audit_tables
from prbench.cli.audit import audit as command
from prbench.data import load_pairs, write_pairs
from prbench.errors import DataError
from prbench.show import render


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    return app


def test_a_sound_suite_exits_with_0(app, sound, tmp_path):
    write_pairs(sound, tmp_path / "sound.parquet")
    result = CliRunner().invoke(app, [str(tmp_path / "sound.parquet")])
    assert result.exit_code == 0
    assert "Audit of sound" in result.stdout
    assert "Where to look" not in result.stdout


def test_a_fault_exits_with_1_and_is_named(app, sound, tmp_path):
    planted = [pair.model_copy(update={"profile": sound[0].profile}) if pair.user == "u5b" else pair for pair in sound]
    write_pairs(planted, tmp_path / "planted.parquet")
    out = tmp_path / "new" / "audit.json"
    arguments = [str(tmp_path / "planted.parquet"), "--out", str(out), "--format", "json", "--examples", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data == json.loads(out.read_text())
    failed = {check["check"] for check in data["checks"] if check["verdict"] == "fail"}
    assert failed == {"duplicates", "evidence"}
    table = CliRunner().invoke(app, [str(tmp_path / "planted.parquet")]).stdout
    assert "not in the profile of u5b" in table


def test_one_split_alone(app, sound, tmp_path):
    write_pairs(sound, tmp_path / "sound.parquet")
    result = CliRunner().invoke(app, [str(tmp_path / "sound.parquet"), "--split", "test", "--format", "json"])
    checks = {check["check"]: check["verdict"] for check in json.loads(result.stdout)["checks"]}
    assert checks["splits"] == "not applicable"
    assert checks["mirror"] == "pass"


def test_people_must_be_known(app, sound, tmp_path):
    write_pairs(sound, tmp_path / "sound.parquet")
    (tmp_path / "people.csv").write_text("user,age\nnobody,3\n")
    result = CliRunner().invoke(app, [str(tmp_path / "sound.parquet"), "--people", str(tmp_path / "people.csv")])
    assert isinstance(result.exception, DataError)


@pytest.mark.parametrize("name", ["mirror", "generic"])
def test_the_embedded_suites_are_audited(name):
    suite = load_pairs(name)
    found = audit(suite)
    assert found.counts["pairs"] == len(suite)
    applicable = {finding.check for finding in found.findings if finding.verdict != "not applicable"}
    if name == "mirror":
        assert found.finding("mirror").verdict == "pass"
        assert found.finding("user-blind accuracy").verdict == "pass"
        assert found.finding("splits").verdict == "pass"
        assert applicable == {finding.check for finding in found.findings} - {"demographics"}
    for format in ("table", "md", "csv", "latex"):
        assert f"Audit of {name}" in render(audit_tables(found), format)
