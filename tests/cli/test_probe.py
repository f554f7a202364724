"""`prbench models probe` gives the value that `--expect-logit` takes, and a run checks it before it asks anything."""

from typer.testing import CliRunner

from fake_vllm import FakeVllm
from prbench.cli import app
from prbench.data import write_pairs
from prbench.errors import ModelError
from small_suite import mirrored


def test_probe_then_expect(tmp_path):
    suite = tmp_path / "pairs.jsonl"
    write_pairs(mirrored(), suite)
    with FakeVllm() as server:
        probed = CliRunner().invoke(app, ["models", "probe", server.address])
        assert probed.exit_code == 0
        logit = float(probed.stdout)
        command = ["run", "--model", server.address, "--suite", str(suite), "--context", "none", "--quiet"]
        command += ["-o", str(tmp_path / "run")]
        refused = CliRunner().invoke(app, [*command, "--expect-logit", str(logit + 1)])
        assert isinstance(refused.exception, ModelError)
        assert not (tmp_path / "run").exists()
        passed = CliRunner().invoke(app, [*command, "--expect-logit", str(logit)])
    assert passed.exit_code == 0, passed.output
    assert (tmp_path / "run" / "result.json").is_file()
