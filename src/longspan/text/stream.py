"""Streaming: the text of tokens that arrive one by one."""

from longspan.text.tokenizer import Tokenizer

INCOMPLETE = "\ufffd"
"""What bytes decode to that are not, or not yet, a character."""


class TextStream:
    """Pieces of text that together are exactly what all tokens decode to, without special tokens.

    No piece ends inside a character: bytes wait for those that complete it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._last: list[int] = []
        self._waiting: list[int] = []

    def add(self, token: int) -> str:
        """The text that can be shown after this token; often empty."""
        self._waiting.append(token)
        text = self._text()
        if not text or text.endswith(INCOMPLETE) or not self._tokenizer.additive:
            return ""
        self._last, self._waiting = [token], []
        return text

    def end(self) -> str:
        """The rest of the text, when no more tokens come."""
        text = self._text()
        self._last, self._waiting = [], []
        return text

    def _text(self) -> str:
        """The text of the waiting tokens, decoded behind the last one: a first token may lose its space."""
        before, both = (
            self._tokenizer.decode(ids, special=False) for ids in (self._last, self._last + self._waiting)
        )
        return both[len(before) :]
