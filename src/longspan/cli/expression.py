"""Patterns as people write them on a command line: a name, an expression, or JSON."""

import ast
import json
from collections.abc import Callable

from longspan.errors import InputError, bad, guess
from longspan.patterns import Pattern, gallery

FORMS = "a pattern of the gallery, an expression such as 'Window(256) | GlobalTokens()', JSON, or a model"
EXAMPLE = "An expression looks like 'Window(256) | GlobalTokens()'."


def is_model(text: str) -> bool:
    """Whether an argument means a model: names of the gallery, expressions and JSON never do.

    >>> is_model("longformer"), is_model("Window(4)"), is_model("longformer-base"), is_model("org/model")
    (False, False, True, True)
    """
    if text in gallery() or "(" in text or text.lstrip().startswith("{"):
        return False
    from longspan.families.registry import presets
    from longspan.inspect.subject import names_a_model

    if not names_a_model(text):
        similar = guess(text, [*gallery(), *presets()])
        raise bad("WHAT", FORMS, text, similar or "`longspan draw` shows the gallery.")
    return True


def pattern(text: str) -> Pattern:
    """The pattern that the text stands for.

    >>> pattern("(Window(256) | GlobalTokens()) & Causal()")
    (Window(256) | GlobalTokens()) & Causal()
    >>> pattern('{"pattern": "Full"}') == pattern("Full()")
    True
    """
    if text in (pictures := gallery()):
        return pictures[text].pattern
    unreadable = bad("pattern", f"an expression, JSON, or one of {', '.join(pictures)}", text, EXAMPLE)
    if text.isidentifier():
        raise unreadable
    try:
        if text.lstrip().startswith("{"):
            return Pattern.from_json(json.loads(text))
        return _pattern(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, json.JSONDecodeError, RecursionError):
        raise unreadable from None


def _pattern(node: ast.expr) -> Pattern:
    """Names of patterns, plain values and the three operators; nothing is executed."""
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return _pattern(left) | _pattern(right)
        case ast.BinOp(left, ast.BitAnd(), right):
            return _pattern(left) & _pattern(right)
        case ast.BinOp(left, ast.Add(), right):
            return _pattern(left) + _pattern(right)
        case ast.Call(ast.Name(name), arguments, keywords):
            return _call(name, arguments, keywords)
    raise bad("pattern", "made of patterns and the operators |, & and +", ast.unparse(node), EXAMPLE)


def _call(name: str, arguments: list[ast.expr], keywords: list[ast.keyword]) -> Pattern:
    if name not in Pattern.registry:
        raise bad("pattern", f"one of {', '.join(sorted(Pattern.registry))}", name)
    make: Callable[..., Pattern] = Pattern.registry[name]
    try:
        options = {str(keyword.arg): _value(keyword.value) for keyword in keywords}
        return make(*map(_value, arguments), **options)
    except TypeError as error:
        raise InputError(f"`{name}` must be given its values, but {error}.") from None


def _value(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except ValueError:
        return _pattern(node)
    return value
