"""The people of version 2 as they are drawn, and the checks that their writers run."""

import importlib.util
import json
import sys
import tomllib
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[2] / "suite"
sys.path.append(str(SUITE))  # the scripts import each other


def module(name):
    spec = importlib.util.spec_from_file_location(f"suite_{name}", SUITE / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


design, check, brief, compiler = (module(name) for name in ("design", "check", "brief", "compile"))
PEOPLE = tomllib.loads((SUITE / "design.toml").read_text(encoding="utf-8"))["personas"]


def test_the_design_meets_its_constraints():
    assert [line for line in design.table(PEOPLE) if line.worst > line.limit + 1e-9] == []
    assert design.structure(PEOPLE) == []
    assert design.arithmetic(PEOPLE) == []


def test_phi_and_v_of_known_tables():
    assert design.phi([(1, 1), (-1, -1), (1, -1), (-1, 1)]) == 0
    assert design.phi([(1, 1), (-1, -1)]) == pytest.approx(1)
    people = [{"stances": {"risk": pole}, "work": work} for pole, work in (("caution", "a"), ("boldness", "b"))]
    assert design.cramer(people, "risk", "work") == pytest.approx(1)
    people += [{"stances": {"risk": pole}, "work": work} for pole, work in (("caution", "b"), ("boldness", "a"))]
    assert design.cramer(people, "risk", "work") == 0


def test_lives_are_led_in_different_places_and_trades():
    for key in ("place", "trade"):
        found = [life[key] for life in design.LIVES.values()]
        found += [
            tomllib.loads((SUITE / "personas" / f"c{n:02d}{h}.toml").read_text(encoding="utf-8"))[key]
            for n in range(1, 26)
            for h in "ab"
        ]
        repeated = {each for each in found if found.count(each) > 1}
        assert repeated <= {"speech-language pathologist"}, "only the first version repeats one"


def test_everybody_is_compiled():
    assert {name[:-1] for name in compiler.read().personas} == {f"c{n:02d}" for n in range(1, 126)}


def test_a_brief_says_what_is_held_and_what_is_not():
    text = brief.brief("c26")
    for half in "ab":
        life = design.LIVES[PEOPLE[f"c26{half}"]["life"]]
        assert life["place"] in text
        assert all(f"- {axis} = {pole}:" in text for axis, pole in PEOPLE[f"c26{half}"]["stances"].items())
    assert all(f"- {axis}: " in text for axis in design.NAMES if axis not in PEOPLE["c26a"]["stances"])


def word(number):
    return "".join(chr(97 + int(digit)) for digit in str(number))


def person(folder, name, change=lambda data: None):
    """A person whose posts are meaningless and in order."""
    drawn = PEOPLE[name]
    count, axes = drawn["posts"], list(drawn["stances"])
    speaking = count - design.silent(count)
    data = {"id": name, "name": f"N{name}", "trade": "t", "place": "p", "voice": "v", "posts": []}
    for k in range(count):
        start = int(name[1:-1]) * 100_000 + (name[-1] == "b") * 50_000 + k * 1000
        text = " ".join(word(start + i) for i in range((20, 60, 100)[k % 3]))
        shows = [axis for i, axis in enumerate(axes) if k in (2 * i % speaking, (2 * i + 1) % speaking)]
        form = check.FORMS[k % len(check.FORMS)]
        post = {"id": f"{name}-{k + 1:02d}", "domain": check.DOMAINS[k % 12], "form": form, "title": "x", "text": text}
        data["posts"].append({**post, "shows": shows})
    change(data)
    lines = [f"{key} = {json.dumps(value)}" for key, value in data.items() if key != "posts"]
    for post in data["posts"]:
        lines += ["[[posts]]", *(f"{key} = {json.dumps(value)}" for key, value in post.items())]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def first(history):
    return next(name for name, p in PEOPLE.items() if p.get("history") == history)


def test_every_new_person_can_be_written(tmp_path):
    for name in (name for name, p in PEOPLE.items() if p.get("version") == 2):
        assert check.check_persona(person(tmp_path, name)) == []


@pytest.mark.parametrize(
    ("history", "change", "said"),
    [
        ("short", lambda d: d["posts"].pop(), "posts, want"),
        ("short", lambda d: [p.update(shows=p["shows"] or d["posts"][0]["shows"]) for p in d["posts"]], "no post that"),
        ("medium", lambda d: [p.update(shows=p["shows"] or d["posts"][0]["shows"]) for p in d["posts"]], "want 25–42"),
        ("medium", lambda d: [p.update(domain="food") for p in d["posts"]], "1 domains, want 7"),
        ("short", lambda d: [p.update(domain="food") for p in d["posts"]], "1 domains, want 4"),
        ("long", lambda d: [p.update(form="rant") for p in d["posts"]], "1 different forms"),
        ("long", lambda d: d["posts"][0].update(form="poem"), "unknown form 'poem'"),
        ("long", lambda d: [p.update(text="w " * 50) for p in d["posts"]], "no post under 35"),
        ("long", lambda d: [p.update(text="w " * 50) for p in d["posts"]], "no post over 90"),
        ("long", lambda d: d["posts"][0].update(text="w " * 150), "151 words"),
        ("long", lambda d: d["posts"][0].update(shows=list(design.NAMES[:6])), "shows 6 stances"),
        ("long", lambda d: [p.update(shows=p["shows"][:0]) for p in d["posts"]], "shown in 0 posts"),
        ("long", lambda d: d["posts"][0].pop("title"), "post 1: missing 'title'"),
    ],
)
def test_what_is_wrong_with_a_new_person_is_said(tmp_path, history, change, said):
    assert said in "\n".join(check.check_persona(person(tmp_path, first(history), change)))


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path):
    (tmp_path / "c26a.toml").write_text("id = ", encoding="utf-8")
    assert "cannot be read" in check.check_persona(tmp_path / "c26a.toml")[0]


def test_what_people_share_is_said(tmp_path):
    names = [f"c{n}{half}" for n in (26, 27) for half in "ab"]
    assert check.check_people([person(tmp_path, name) for name in names]) == []

    def same(data):
        data["name"] = "Same"
        data["posts"][0]["text"] = f"we paid {len(data['id'])}{data['id'][1:3]} for it all {data['id']}a"

    found = "\n".join(check.check_people([person(tmp_path, name, same) for name in names]))
    assert "all named Same" in found
    assert "c26a-01, c26b-01, c27a-01, c27b-01: 4 posts open with 'we paid" not in found, "the third word differs"

    def run(data):
        data["posts"][1]["text"] = f"Now then friends, {data['id'][1:3]} goats ate the whole of my hat"

    found = "\n".join(check.check_people([person(tmp_path, name, run) for name in names]))
    assert "share 'ate the whole of my hat'" in found
    assert "4 posts open with 'now then friends'" in found
