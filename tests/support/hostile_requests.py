"""Requests that no honest client sends, drawn by a seeded generator: bytes for a socket, and whether a reply is due."""

import gzip
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from annotate_study import NASTY
from mutations import SENTINELS, change


class Door(NamedTuple):
    """What a hostile client knows of a server."""

    host: str
    paths: Sequence[str]
    """Addresses that it answers."""
    bodies: Sequence[Any]
    """JSON that it takes, or the fields of a form."""
    form: bool = False
    cookie: str = ""
    """Of somebody who may come in."""


class Sent(NamedTuple):
    """A request."""

    way: str
    data: bytes
    whole: bool = True
    """Whether it is complete as far as HTTP goes, so that a server must say something."""


def draw(door: Door, chance: random.Random) -> Sent:
    """A request in one of many ways."""
    way = chance.choice(_WAYS)
    made = way(door, chance)
    name = way.__name__.strip("_")
    return made._replace(way=name) if isinstance(made, Sent) else Sent(name, made)


def _request(
    door: Door,
    path: str | bytes,
    body: bytes = b"",
    method: str = "GET",
    headers: Sequence[tuple[str, str]] = (),
    *,
    length: str | None = None,
    host: str | None = None,
    kind: str | None = None,
) -> bytes:
    target = path if isinstance(path, bytes) else path.encode()
    own = [("Host", door.host if host is None else host), ("Connection", "close")]
    if body or length is not None:
        own += [("Content-Length", str(len(body)) if length is None else length)]
        own += [("Content-Type", kind or ("application/x-www-form-urlencoded" if door.form else "application/json"))]
    if door.cookie:
        own.append(("Cookie", door.cookie))
    lines = "".join(f"{name}: {value}\r\n" for name, value in [*own, *headers]).encode("utf-8", "surrogateescape")
    return method.encode() + b" " + target + b" HTTP/1.1\r\n" + lines + b"\r\n" + body


def _encoded(door: Door, value: Any) -> bytes:
    if door.form and isinstance(value, dict):
        fields = [[quote(str(text), errors="surrogatepass") for text in field] for field in value.items()]
        return "&".join(map("=".join, fields)).encode()
    said = json.dumps(value)
    for mark, meant in SENTINELS.items():
        said = said.replace(mark, meant)
    return said.encode()


def _post(door: Door, chance: random.Random, body: bytes, **more: Any) -> bytes:
    return _request(door, chance.choice(door.paths), body, "POST", **more)


def _wrong_values(door: Door, chance: random.Random) -> bytes:
    value = json.loads(json.dumps(chance.choice(door.bodies)))
    for _ in range(chance.choice((1, 1, 2, 5))):
        change(value, chance)
    return _post(door, chance, _encoded(door, value))


def _wrong_bytes(door: Door, chance: random.Random) -> bytes:
    body = bytearray(_encoded(door, chance.choice(door.bodies)))
    for _ in range(chance.choice((1, 4, 40))):
        body[chance.randrange(len(body))] = chance.randrange(256)
    return _post(door, chance, bytes(body))


_BODIES: tuple[bytes, ...] = (
    b"",
    b"null",
    b"[]",
    b"{}",
    b"0",
    b'"text"',
    b"nan",
    b"\x00" * 1000,
    b"\xff\xfe" * 100,
    b"[" * 100_000,
    b'{"items": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"items": [' + b"9" * 5000 + b"]}",
    b'{"items": [], "items": [1]}',
    b'{"items": [{"question": "\\ud800", "answer": "\\udfff", "posts": []}]}',
    b'{"items": [{"question": "Q", "answer": "A", "posts": ["' + b"x" * 300_000 + b'"]}]}',
    b'{"__class__": "os.system", "py/object": "os.system", "items": [{"__reduce__": ["os.system", ["id"]]}]}',
    b"a=" + b"%ff" * 1000,
    b"&".join(b"f%d=1" % number for number in range(3000)),
    b"=&=&=&" * 500,
    b"form_token=" + b"x" * 100_000,
)


def _wrong_body(door: Door, chance: random.Random) -> bytes:
    return _post(door, chance, chance.choice(_BODIES))


def _script_in_a_field(door: Door, chance: random.Random) -> bytes:
    value = json.loads(json.dumps(chance.choice(door.bodies)))
    texts = chance.choice(
        (NASTY, "{{ 7*7 }}${7*7}<%= 7*7 %>", "'; DROP TABLE answer; --", "../../etc/passwd", "%s%n%x")
    )
    return _post(door, chance, _encoded(door, _filled(value, texts)))


def _filled(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(part, text) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, text) for part in value]
    return text if isinstance(value, str) else value


_PATHS: tuple[str | bytes, ...] = (
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/static/..%2f..%2fetc%2fpasswd",
    "/static/%00",
    "//etc/passwd",
    "/\\..\\..\\windows",
    "/pair/" + "x" * 4000,
    "/join/" + quote(NASTY),
    "/" + quote(NASTY) + "?q=" + quote(NASTY),
    "/users/" + quote(NASTY, safe="") + "/feedback",
    "/users/%00/feedback",
    "/users/%ff%fe/feedback",
    "/users/" + "%2f" * 50 + "/feedback",
    "/users/" + "u" * 30_000 + "/feedback",
    "/?" + "a=b&" * 5000,
    "http://evil.example/score",
    "*",
    "evil.example:443",
    "/progress.json%0d%0aSet-Cookie:%20a=b",
    b"/\xff\xfe\x80",
    "/score#fragment",
    "/score/../metrics",
    "",
    " /score",
)


def _wrong_path(door: Door, chance: random.Random) -> bytes:
    return _request(door, chance.choice(_PATHS), method=chance.choice(("GET", "POST", "DELETE")))


def _wrong_method(door: Door, chance: random.Random) -> bytes:
    methods = ("PUT", "PATCH", "TRACE", "OPTIONS", "CONNECT", "HEAD", "BREW", "get", "DELETE", "X" * 5000, "PRI")
    return _request(door, chance.choice(door.paths), method=chance.choice(methods))


_HEADERS: tuple[tuple[tuple[str, str], ...], ...] = (
    tuple((f"X-{number}", "y") for number in range(500)),
    (("X-Long", "y" * 100_000),),
    (("X-Null", "a\x00b"),),
    (("X-Split", "a\r\nSet-Cookie: owned=1"),),
    (("X-Bytes", "\udcff\udcfe"),),
    (("Host", "evil.example"),),
    (("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")),
    (("Origin", "null"),),
    (("Content-Length", "5"), ("Content-Length", "50")),
    (("Transfer-Encoding", "chunked"), ("Content-Length", "4")),
    (("Transfer-Encoding", "gzip, chunked"),),
    (("Transfer-Encoding", "xchunked"),),
    (("Expect", "100-continue"),),
    (("Expect", "200-maybe"),),
    (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", "x")),
    (("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABkAAQAAP__")),
    (("Range", "bytes=0-,0-,0-" + ",0-" * 1000),),
    (("Cookie", "session=" + "a" * 20_000),),
    (("Cookie", "=;=;=;;; \udcff"),),
    (("Authorization", "Bearer \udcff"),),
    (("Authorization", "Basic " + "A" * 10_000),),
    (("Prefer", "wait=nan"),),
    (("Prefer", "wait=-1, wait=1e999"),),
    (("Prefer", "wait=" + "9" * 400),),
    (("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Host", "evil.example"), ("Forwarded", "host=evil")),
    (("Accept-Encoding", "gzip;q=9" * 2000),),
    ((" folded", "x"),),
    (("Bad Name", "x"),),
    (("", "x"),),
)


def _wrong_headers(door: Door, chance: random.Random) -> Sent:
    headers = chance.choice(_HEADERS)
    names = {name for name, _ in headers}
    body = _encoded(door, chance.choice(door.bodies)) if chance.random() < 0.5 else b""
    data = _request(door, chance.choice(door.paths), body, "POST" if body else "GET", headers)
    return Sent("", data, whole=not names & {"Transfer-Encoding", "Content-Length", "Expect"})


def _wrong_host(door: Door, chance: random.Random) -> bytes:
    hosts = ("evil.example", "", "127.0.0.1:1", "localhost.", "[::1]", "a" * 5000, "127.0.0.1:99999", "\udcff")
    return _request(door, chance.choice(door.paths), host=chance.choice(hosts))


def _wrong_length(door: Door, chance: random.Random) -> Sent:
    body = _encoded(door, chance.choice(door.bodies))
    length = chance.choice(("-1", "nonsense", "1e3", "0x10", "9" * 400, "99999999999", str(len(body) + 50), "3", " 7 "))
    return Sent("", _post(door, chance, body, length=length), whole=False)


def _wrong_chunks(door: Door, chance: random.Random) -> Sent:
    chunks = (b"zz\r\nabc\r\n", b"-1\r\n", b"5\r\nabc", b"ffffffffffffffff\r\nx", b"3;" + b"x" * 9000, b"1\r\na" * 500)
    head = _request(door, chance.choice(door.paths), method="POST", headers=[("Transfer-Encoding", "chunked")])
    return Sent("", head + chance.choice(chunks), whole=False)


def _wrong_kind(door: Door, chance: random.Random) -> bytes:
    kinds = ("text/plain", "multipart/form-data; boundary=", "application/json; charset=utf-16", "", "\udcff", "a/b/c")
    return _post(door, chance, _encoded(door, chance.choice(door.bodies)), kind=chance.choice(kinds))


def _compressed(door: Door, chance: random.Random) -> bytes:
    body = gzip.compress(b" " * (20 << 20)) if chance.random() < 0.3 else b"not gzip"
    return _post(door, chance, body, headers=[("Content-Encoding", chance.choice(("gzip", "br", "nonsense")))])


def _no_http(door: Door, chance: random.Random) -> Sent:
    lines = (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"\x00" * 5000,
        b"A" * 200_000,
        bytes(chance.randrange(256) for _ in range(500)),
        b"GET / HTTP/1.1\r\nHost",
        b"",
    )
    return Sent("", chance.choice(lines), whole=False)


def _two_at_once(door: Door, chance: random.Random) -> Sent:
    first = _request(door, door.paths[0]).replace(b"Connection: close\r\n", b"")
    return Sent("", first + draw(door, chance).data)


_WAYS: tuple[Callable[[Door, random.Random], bytes | Sent], ...] = (
    _wrong_values,
    _wrong_values,
    _wrong_values,
    _wrong_bytes,
    _wrong_body,
    _script_in_a_field,
    _wrong_path,
    _wrong_method,
    _wrong_headers,
    _wrong_headers,
    _wrong_host,
    _wrong_length,
    _wrong_chunks,
    _wrong_kind,
    _compressed,
    _no_http,
    _two_at_once,
)
