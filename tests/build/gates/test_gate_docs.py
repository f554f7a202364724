"""What the page on gates says is so."""

import re
from pathlib import Path

from prbench.build.gates import KINDS

PAGE = (Path(__file__).parents[3] / "docs" / "build-gates.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "build-gates.md", "exec"), {})
    assert capsys.readouterr().out.strip() == code.strip().splitlines()[-1].removeprefix("# ")


def test_every_gate_stands_in_the_table_with_its_default():
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| ([^|]+) \| [^|]*\|$", PAGE, re.MULTILINE)
    defaults = {name: "–" if kind.default is None else f"{kind.default:g}" for name, kind in KINDS.items()}
    assert dict(rows) == {"couples": "always on", **defaults}
    assert [name for name, _ in rows] == ["couples", *KINDS]
