"""The sandbox that fills templates: plain values in, bounded text out, and no call but a filter's.

A template is a stranger's file, so it is treated as data. It is given strings, numbers, tuples and mappings of strings,
never an object of this package; it can read items, loop, branch and filter, and nothing else. What it may cost is
bounded: the characters it writes, the steps of its loops and the text that its filters go through.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from jinja2 import StrictUndefined, Template, Undefined, nodes
from jinja2 import filters as jinja_filters
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from prbench.types import Frozen

MOST_CHARACTERS = 10_000_000
"""The longest text that a template may write; the longest profile of the paper is a tenth of it."""
MOST_STEPS = 100_000
"""The most steps that all loops of one filling may take."""
MOST_WORK = 100_000_000
"""The most characters that all filters and joinings of one filling may go through."""
_MOST_BITS = 256
_LONGEST_INDENT = 80
_MOST_PLACES = 20

_LOOP = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem"})
_STATEMENTS = (nodes.Output, nodes.For, nodes.If, nodes.Assign, nodes.With, nodes.Scope)
_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "first", "float", "indent", "int", "items", "join", "last"),
    *("length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round", "select"),
    *("selectattr", "sort", "string", "sum", "title", "trim", "truncate", "unique", "upper", "wordcount"),
)
_STEPS, _JOIN = "loop steps", "joined"
"""Filters of our own, by names that no template can write."""


class _Meter:
    """Steps and work that one filling has cost so far."""

    def __init__(self) -> None:
        self.steps = 0
        self.work = 0

    def step(self, count: int) -> None:
        self.steps += count
        if self.steps > MOST_STEPS:
            raise SecurityError(f"its loops take more than {MOST_STEPS:,} steps")

    def go_through(self, characters: int) -> None:
        self.work += characters
        if self.work > MOST_WORK:
            raise SecurityError(f"its filters and joinings go through more than {MOST_WORK:,} characters")


_METER: ContextVar[_Meter] = ContextVar("meter")


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja without calls, attributes, growth and anything that could be left running.

    Example:
        >>> write(Sandbox().from_string("{{ posts[0].text | upper }}"), {"posts": ({"text": "tea"},)})
        'TEA'
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, finalize: Callable[[Any], Any] | None = None) -> None:
        super().__init__(
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            autoescape=False,
            optimized=False,  # constants would be folded before anything is bounded
            cache_size=0,
            finalize=_scalar if finalize is None else lambda value: finalize(_scalar(value)),
        )
        self.globals.clear()
        known = {name: _bounded(name, jinja_filters.FILTERS[name]) for name in _FILTERS}
        self.filters = {**known, _STEPS: _steps, _JOIN: _bounded("join", jinja_filters.FILTERS["join"])}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _restricted(super()._parse(source, name, filename))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Read a key of a mapping, or the state of a loop; an object has no attributes here."""
        if type(obj) is dict and attribute in obj:  # a field of a post, as nearly always
            return obj[attribute]
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Read an item of a mapping, a sequence or a string."""
        if isinstance(obj, Undefined):
            return obj[argument]
        if isinstance(obj, LoopContext) and argument in _LOOP:
            return getattr(obj, argument)
        by_place = isinstance(obj, str | tuple | list) and isinstance(argument, int | slice)
        if by_place or isinstance(obj, Mapping):
            try:
                return obj[argument]
            except (LookupError, TypeError):
                pass
        return self.undefined(obj=obj, name=argument)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: nothing that is called can be vouched for."""
        raise SecurityError("a template may call nothing; use a filter")

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Add, multiply and raise numbers of a bounded size, and join texts of a bounded length."""
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * (abs(right) if operator == "**" else 1) + right.bit_length()
            if bits > _MOST_BITS:
                raise SecurityError(f"the number {operator!r} makes is too large")
        elif operator == "+" and isinstance(left, str) and isinstance(right, str):
            _fits(len(left) + len(right))
            _METER.get().go_through(len(left) + len(right))
        elif not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"{operator!r} is for numbers; texts are put together with '~'")
        return super().call_binop(context, operator, left, right)


def write(template: Template, slots: Mapping[str, Any]) -> str:
    """Fill a template of a `Sandbox` with plain values, within the bounds.

    Raises:
        SecurityError: If it does what a template may not, or more of it than it may.
    """
    token = _METER.set(_Meter())
    try:
        pieces: list[str] = []
        length = 0
        for piece in template.generate(slots):
            length += len(piece)
            if length > MOST_CHARACTERS:
                _fits(length)
            pieces.append(piece)
        return "".join(pieces)
    finally:
        _METER.reset(token)


def plain(value: Any) -> Any:
    """The same value as strings, numbers, tuples and mappings only: what a template may be given.

    Example:
        >>> from prbench.types import Post
        >>> plain([Post(id="1", text="Tea.")])
        ({'id': '1', 'text': 'Tea.', 'category': ''},)
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Frozen):
        known = value.__dict__
        return {name: plain(known[name]) for name in type(value).__pydantic_fields__}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return tuple([plain(one) for one in value])
    raise TypeError(f"a template cannot be given a {type(value).__name__}")


def _restricted(tree: nodes.Template) -> nodes.Template:
    """Refuse statements that hide a call or a copy; put a meter before every loop and a bound on every joining."""
    for node in tree.find_all(nodes.Node):
        if isinstance(node, nodes.Stmt) and not isinstance(node, _STATEMENTS):
            raise _refused(node, f"{type(node).__name__.lower()!r} is not for templates of prompts")
        if isinstance(node, nodes.Call):
            raise _refused(node, "a template may call nothing; use a filter")
        if isinstance(node, nodes.For) and node.recursive:
            raise _refused(node, "a loop may not call itself")
        if isinstance(node, nodes.List | nodes.Tuple | nodes.Dict) and not _of_constants(node):
            raise _refused(node, "a list in a template may hold written values only")
        if isinstance(node, nodes.Assign) and not isinstance(node.target, nodes.Name):
            raise _refused(node, "only a name can be set")
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, _STEPS, [], [], None, None, lineno=loop.lineno)
    return _bounded_joins(tree)


def _bounded_joins(tree: nodes.Template) -> nodes.Template:
    """Turn `a ~ b` into a joining that is bounded like every filter."""
    for node in [tree, *tree.find_all(nodes.Node)]:
        for field, value in node.iter_fields():
            if isinstance(value, nodes.Concat):
                setattr(node, field, _joined(value))
            elif isinstance(value, list):
                value[:] = [_joined(one) if isinstance(one, nodes.Concat) else one for one in value]
    return tree


def _joined(concat: nodes.Concat) -> nodes.Filter:
    parts = nodes.List(concat.nodes, lineno=concat.lineno)
    joined = nodes.Filter(parts, _JOIN, [], [], None, None, lineno=concat.lineno)
    if concat.environment is not None:
        joined.set_environment(concat.environment)
    return joined


def _of_constants(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Tuple) and node.ctx == "store":  # the names of `for key, value in …`
        return True
    return all(isinstance(one, nodes.Const | nodes.Pair) for one in node.iter_child_nodes())


def _refused(node: nodes.Node, message: str) -> TemplateSyntaxError:
    return TemplateSyntaxError(message, node.lineno or 1)


def _steps(values: Any) -> tuple[Any, ...]:
    found = tuple(values)
    _METER.get().step(len(found))
    return found


def _bounded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter of Jinja's: flat values only, its work counted, its result bounded before it is made."""

    def bounded(*args: Any, **kwargs: Any) -> Any:
        args = tuple(tuple(one) if isinstance(one, Iterator) else one for one in args)
        given = [one for one in (*args, *kwargs.values()) if not _is_context(one)]
        _METER.get().go_through(sum(map(_size, given)))
        if name == "replace":
            text, old, new = (str(one) for one in given[:3])
            _fits(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
        if name == "join":
            parts = list(given[0])
            _fits(_size(parts) + len(parts) * _size(given[1] if len(given) > 1 else ""))
        if name == "indent" and any(not isinstance(one, bool) and _number(one) > _LONGEST_INDENT for one in given[1:]):
            raise SecurityError(f"'indent' takes at most {_LONGEST_INDENT}")
        if name == "round" and any(isinstance(one, int | float) and abs(one) > _MOST_PLACES for one in given[1:]):
            raise SecurityError(f"'round' takes at most {_MOST_PLACES} places")
        return original(*args, **kwargs)

    # Jinja marks filters that want the context or the environment as their first argument.
    if mark := getattr(original, "jinja_pass_arg", None):
        bounded.jinja_pass_arg = mark  # type: ignore[attr-defined]
    return bounded


def _is_context(value: Any) -> bool:
    return type(value).__module__.startswith("jinja2.") and not isinstance(value, Undefined)


def _size(value: Any) -> int:
    """Characters of a plain value, about; lists of lists are refused, for they can be made to grow without bound."""
    if isinstance(value, tuple | list):
        if any(isinstance(one, tuple | list) for one in value):
            raise SecurityError("a list of lists cannot be filtered")
        return sum(map(_size, value))
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return len(value) if isinstance(value, str) else 20


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else _size(value)


def _scalar(value: Any) -> Any:
    if type(value) is str or value is None or isinstance(value, str | int | float | Undefined):
        return value
    raise SecurityError(f"a {type(value).__name__} cannot be shown as it is; write a loop over it")


def fits(text: str) -> str:
    """Return a text that a template made, unless it is longer than any may be."""
    _fits(len(text))
    return text


def _fits(length: int) -> None:
    if length > MOST_CHARACTERS:
        raise SecurityError(f"it makes a text of more than {MOST_CHARACTERS:,} characters")
