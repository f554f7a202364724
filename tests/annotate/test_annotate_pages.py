"""The pages over HTTP: what is shown, what is kept, what is refused. Nothing hidden ever leaves the server."""

import socket
import threading
import time

import pytest
from starlette.testclient import TestClient

from annotate_study import HIDDEN, NASTY, Client, hidden_fields, marks, pairs, served, study
from prbench.annotate.app import make_app
from prbench.annotate.guard import HEADERS, MAX_BODY

HOST = "127.0.0.1:8765"


class Site:
    """A study, its application, and people who come to it."""

    def __init__(self, path, **options):
        self.opened = study(path, **options)
        self.store = self.opened.store
        self.app = make_app(self.store, {HOST})
        self.links = [f"/join/{invitation.token}" for invitation in self.opened.invitations]

    def http(self):
        return TestClient(self.app, base_url=f"http://{HOST}")

    def join(self, number=0):
        return Client(self.http(), self.links[number])

    def rows(self, query, *values):
        with self.store.reading() as connection:
            return [tuple(row) for row in connection.execute(query, values)]

    def answers(self):
        return self.rows("SELECT annotator, position, version, preference FROM answer JOIN task ON task.id = task")


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def ann(site):
    return site.join(0)


@pytest.fixture
def bob(site):
    return site.join(1)


def test_a_whole_run(site, ann):
    for number in range(6):
        assert f"{number} of 6 done" in ann.page.text
        assert f"Pair {number + 1}:" in ann.page.text
        ann.answer(preference="second" if number % 2 else "first")
    assert "Thank you" in ann.page.text
    assert [row[1:] for row in site.answers()] == [(n, 1, "second" if n % 2 else "first") for n in range(6)]
    assert ann.get("/").url.path == "/done"


def test_nothing_hidden_is_in_any_response(tmp_path):
    site = Site(tmp_path, names=("HUSH ann", "HUSH bob"))
    ann, bob = site.join(0), site.join(1)
    for one in (ann, bob):
        one.answer(preference="")  # incomplete
        first = one.page
        one.run()
        one.answer(first)  # stale
        for address in ("/", "/last", "/done", "/delete", "/posts", "/pair/none", "/nothing", "/static/none"):
            one.get(address)
        one.get(f"/join/{'x' * 32}")
    everything = "\n".join(ann.seen + bob.seen)
    assert everything.count("Answer 1") > 12  # pages with pairs are among them
    for hidden in (*HIDDEN, "chosen", "rejected", "narrative", "aspect"):
        assert hidden not in everything, hidden
    for name in ("annotate.css", "annotate.js", "theme.js"):
        text = site.http().get(f"/static/{name}").text
        assert len(text) > 500
        assert not any(hidden in text for hidden in HIDDEN)


def test_two_people_share_no_address(site, ann, bob):
    codes = {row[0]: row[1] for row in site.rows("SELECT code, annotator FROM task")}
    own = {one: [code for code, annotator in codes.items() if annotator == one] for one in (1, 2)}
    assert ann.get(f"/pair/{own[1][3]}").status_code == 200
    assert bob.get(f"/pair/{own[1][3]}").status_code == 404
    form = {**marks(), **hidden_fields(bob.get("/").text)}
    assert bob.send(f"/pair/{own[1][3]}", **form).status_code == 404
    assert site.answers() == []


def test_another_persons_form_is_refused(site, ann, bob):
    token = hidden_fields(bob.page.text)["form_token"]
    assert ann.answer(form_token=token).status_code == 403
    assert ann.send("/delete", form_token=token).status_code == 403
    assert ann.send("/leave", form_token=token).status_code == 403
    assert site.answers() == []
    assert len(site.rows("SELECT * FROM session")) == 2
    ann.get("/")
    assert ann.answer(form_token="").status_code == 403


@pytest.mark.parametrize("token", ["x" * 32, "0", "%00", "é" * 8, "a" * 5000])
def test_a_forged_invitation_is_refused(site, token):
    http = site.http()
    assert http.get(f"/join/{token}").status_code == 403
    assert http.post(f"/join/{token}", data={"consent": "yes"}).status_code == 403
    assert site.rows("SELECT * FROM session") == []


def test_whoever_is_not_signed_in_sees_nothing(site, ann):
    address = ann.page.url.path
    http = site.http()
    for path in ("/", address, "/posts", "/done", "/last", "/delete"):
        found = http.get(path)
        assert (found.status_code, "Question" in found.text) == (403, False)
    (name, value), *_ = ann.http.cookies.items()
    for forged in (value[:-1] + ("x" if value[-1] != "x" else "y"), value.partition(".")[0], "", "a.b", "a" * 5000):
        forger = site.http()
        forger.cookies.set(name, forged)
        assert forger.get(address).status_code == 403
    assert http.post(address, data=marks()).status_code == 403


def test_the_cookie_is_for_the_server_alone(site):
    http = site.http()
    assert "set-cookie" not in http.get(site.links[0]).headers  # a preview of the link signs nobody in
    found = http.post(site.links[0], data={"consent": "yes"}, follow_redirects=False)
    parts = {part.strip().lower() for part in found.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert "secure" not in parts  # plain HTTP on loopback would never send it
    with TestClient(make_app(site.store, {HOST}, secure=True), base_url=f"http://{HOST}") as behind_a_proxy:
        found = behind_a_proxy.post(site.links[0], data={"consent": "yes"}, follow_redirects=False)
    assert "; Secure" in found.headers["set-cookie"]
    assert (found.status_code, found.headers["location"]) == (303, "/")


def test_without_consent_nobody_is_signed_in(site):
    found = site.http().post(site.links[0], data={})
    assert found.status_code == 422
    assert "Please tick the box" in found.text
    assert site.rows("SELECT * FROM session") == []


def test_an_incomplete_form_keeps_its_marks_and_saves_nothing(site, ann):
    found = ann.answer(first_factuality="5", second_relevance="9", preference="unsure")
    assert found.status_code == 422
    assert "1 of the questions below is still open" in found.text
    assert 'name="first_factuality" value="5" required checked' in found.text
    assert 'value="unsure" data-key="0" required checked' in found.text
    assert 'name="second_relevance" value="3" required checked' not in found.text
    assert site.answers() == []
    assert ann.answer().status_code == 200
    assert len(site.answers()) == 1


def test_a_stale_tab_overwrites_nothing(site, ann):
    stale = ann.page
    ann.answer(preference="first")
    found = ann.answer(stale, preference="second")
    assert found.status_code == 409
    assert "out of date" in found.text
    assert f'href="{stale.url.path}"' in found.text
    assert site.answers() == [(1, 0, 1, "first")]


def test_an_older_version_overwrites_nothing(site, ann):
    ann.answer(preference="first")
    older = ann.get("/last")
    ann.answer(older, preference="second")
    assert ann.answer(older, preference="unsure").status_code == 409
    assert [row[2:] for row in site.answers()] == [(1, "first"), (2, "second")]
    for version in ("", "-1", "1e3", "٣", "9" * 4000):
        assert ann.answer(older, preference="unsure", version=version).status_code == 409


def test_the_same_form_sent_twice_is_kept_once(site, ann):
    page = ann.page
    ann.answer(page)
    assert ann.answer(page).url.path != page.url.path  # went on, without a word
    assert len(site.answers()) == 1


def test_many_tabs_at_once_save_one_answer(site, ann):
    page, found = ann.page, []

    def send(preference):
        one = site.http()
        one.cookies.update(ann.http.cookies)
        data = {**marks(preference), **hidden_fields(page.text)}
        found.append(one.post(page.url.path, data=data, follow_redirects=False).status_code)

    threads = [threading.Thread(target=send, args=(each,)) for each in ("first", "second", "unsure")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [303, 409, 409]
    assert len(site.answers()) == 1


def test_undo_and_change_with_history(site, ann):
    ann.answer(preference="first")
    ann.answer(preference="first")
    third = ann.page.url.path
    assert "Back to pair 2" in ann.page.text
    second = ann.get("/last")
    assert "You have answered this pair" in second.text
    assert 'value="first" data-key="1" required checked' in second.text
    assert "Back to pair 1" in second.text
    assert ann.answer(second, preference="unsure").url.path == third
    assert site.answers() == [(1, 0, 1, "first"), (1, 1, 1, "first"), (1, 1, 2, "unsure")]
    assert [row[1:] for row in site.rows("SELECT task, version, preference FROM latest")] == [
        (1, "first"),
        (2, "unsure"),
    ]


def test_resume_where_one_left(site, ann):
    ann.run(4)
    there = ann.page.url.path
    elsewhere = site.join(0)  # the same link on another device
    assert elsewhere.page.url.path == there
    assert "4 of 6 done" in elsewhere.page.text
    ann.send("/leave", form_token=hidden_fields(ann.page.text)["form_token"])
    assert "signed out" in ann.page.text
    assert ann.get("/").status_code == 403
    assert elsewhere.get("/").url.path == there


def test_delete_my_data(site, ann, bob, tmp_path):
    bob.run(2)
    ann.run()
    bob.get("/last")
    assert ann.get("/delete").status_code == 200
    assert len(site.answers()) == 8  # asking is not deleting
    found = ann.send("/delete", form_token=hidden_fields(ann.page.text)["form_token"])
    assert "deleted" in found.text
    assert [row[0] for row in site.answers()] == [2, 2]
    assert site.rows("SELECT name FROM annotator ORDER BY id") == [("deleted-1",), ("bob",)]
    assert ann.get("/").status_code == 403
    assert ann.get(site.links[0]).status_code == 403
    assert bob.get("/").status_code == 200


def test_scripts_are_text(tmp_path):
    ann = Site(tmp_path, of=pairs(extra=NASTY)).join()
    assert ann.page.text.count("&lt;script&gt;") == 7  # question, four posts, two answers
    assert "<script>window" not in ann.page.text
    assert "<img" not in ann.page.text


def test_every_response_has_the_headers(site, ann):
    http = site.http()
    found = [ann.get("/"), http.get("/"), http.get("/nothing"), http.get("/static/annotate.js"), http.post("/done")]
    found += [http.get("/", headers={"host": "evil.example"}), http.get(site.links[0])]
    assert [each.status_code for each in found] == [200, 403, 404, 200, 405, 421, 200]
    for each in found:
        assert {name: each.headers.get(name) for name in HEADERS} == HEADERS


def test_forms_of_other_sites_are_refused(site, ann):
    form = {**marks(), **hidden_fields(ann.page.text)}
    address = ann.page.url.path
    for origin, status in ((f"http://{HOST}", 303), ("http://evil.example", 403), ("null", 403)):
        found = ann.http.post(address, data=form, headers={"origin": origin}, follow_redirects=False)
        assert found.status_code == status
    assert len(site.answers()) == 1


@pytest.mark.parametrize("body", ["a=" + "x" * MAX_BODY, "&".join(f"f{n}=1" for n in range(600)), b"a=\xff\xfe"])
def test_what_is_no_form_is_refused(site, ann, body):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    found = ann.http.post(ann.page.url.path, content=body, headers=headers)
    assert found.status_code == 413 if body != b"a=\xff\xfe" else found.status_code in (403, 413)


def test_a_file_that_is_locked_is_told_and_saves_nothing(site, ann, monkeypatch):
    monkeypatch.setattr("prbench.annotate.store.BUSY_S", 0.05)
    with site.store.writing():
        found = ann.answer()
    assert found.status_code == 503
    assert "Nothing was saved" in found.text
    assert {name: found.headers.get(name) for name in HEADERS} == HEADERS
    assert site.answers() == []


def test_pairs_mode_has_no_page_for_posts(ann):
    assert ann.get("/posts").status_code == 404


class TestSelf:
    """Mode self: posts first, then pairs, for oneself."""

    @pytest.fixture
    def site(self, tmp_path):
        return Site(tmp_path, mode="self")

    def posts(self, site):
        return [row[0] for row in site.rows("SELECT text FROM post ORDER BY annotator, position")]

    def write(self, ann, *texts, do="start", **fields):
        mark = hidden_fields(ann.page.text)
        return ann.send("/posts", **{**mark, "post": list(texts), "do": do, **fields})

    def test_first_posts_then_pairs(self, site, ann):
        assert ann.page.url.path == "/posts"
        code = site.rows("SELECT code FROM task WHERE annotator = 1")[0][0]
        assert ann.get(f"/pair/{code}").status_code == 409
        ann.get("/")
        assert self.write(ann, "one", " ", "two").status_code == 422
        assert "at least 3 posts; there are 2" in ann.page.text
        assert self.posts(site) == ["one", "two"]  # kept all the same
        assert self.write(ann, "one!", "two", do="save", pasted="three\r\n---\r\nfour").url.path == "/posts"
        assert self.posts(site) == ["one!", "two", "three", "four"]
        found = self.write(ann, "one!", "two", "three", NASTY)
        assert "Which answer do you prefer?" in found.text
        assert "factuality" not in found.text.lower()
        assert NASTY not in found.text
        assert self.posts(site)[-1] == NASTY

    def test_posts_stand_once_the_person_has_begun(self, site, ann):
        self.write(ann, "one", "two", "three")
        page = ann.page
        assert ann.get("/posts").status_code == 409
        form = {**hidden_fields(page.text), "post": ["x", "y", "z"], "do": "save"}
        assert ann.send("/posts", **form).status_code == 409
        assert self.posts(site) == ["one", "two", "three"]

    def test_a_stale_tab_of_posts_overwrites_nothing(self, site, ann):
        stale = hidden_fields(ann.page.text)
        self.write(ann, "one", do="save")
        found = ann.send("/posts", **{**stale, "post": ["other"], "do": "save"})
        assert found.status_code == 409
        assert self.posts(site) == ["one"]

    @pytest.mark.parametrize("texts", [["x" * 10_001], [f"post {n}" for n in range(101)]])
    def test_too_much_is_refused_and_not_lost(self, site, ann, texts):
        found = self.write(ann, *texts, do="save")
        assert found.status_code == 422
        assert texts[-1] in found.text
        assert self.posts(site) == []

    def test_control_characters_are_dropped(self, site, ann):
        self.write(ann, "\x00one\x07", "\x00", "two\r\nlines", do="save")
        assert self.posts(site) == ["one", "two\nlines"]

    def test_reasons_are_kept_and_shown_again(self, site, ann):
        self.write(ann, "one", "two", "three")
        ann.answer(preference="second", reason=f"  {NASTY} ")
        assert site.rows("SELECT preference, reason, first_factuality FROM answer") == [("second", NASTY, None)]
        assert "&lt;script&gt;window" in ann.get("/last").text

    def test_deleted_posts_are_gone_from_the_disk(self, site, ann, tmp_path):
        self.write(ann, "A SECRET OF MINE", "two", "three")
        ann.answer(reason="A REASON OF MINE")
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"A SECRET OF MINE" in held
        ann.send("/delete", form_token=hidden_fields(ann.get("/delete").text)["form_token"])
        left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"A SECRET OF MINE" not in left
        assert b"A REASON OF MINE" not in left
        assert b"Green tea" in left


def test_a_form_whose_sender_goes_away_leaves_no_traceback(tmp_path, capfd):
    with served(tmp_path) as site:
        host = site.url.partition("://")[2]
        name, _, port = host.partition(":")
        head = f"POST /posts HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\nhalf".encode()
        with socket.create_connection((name, int(port)), timeout=10) as connection:
            connection.sendall(head)
            time.sleep(0.2)
        time.sleep(0.3)
    assert "Traceback" not in "".join(capfd.readouterr())
