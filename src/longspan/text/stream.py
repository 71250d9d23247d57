"""Tokens that come one by one, as text that can be shown at once."""

from longspan.text.tokenizer import Tokenizer

UNSURE = "\ufffd"
"""What bytes are decoded to that make no character, or none yet."""


class TextStream:
    """Pieces of text that make up exactly what all tokens decode to, without special tokens.

    No piece ends within a character: bytes wait for those that complete it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._last: list[int] = []
        self._waiting: list[int] = []

    def add(self, token: int) -> str:
        """What can be shown now that this token has come; often nothing."""
        self._waiting.append(token)
        text = self._text()
        if not text or text.endswith(UNSURE) or not self._tokenizer.additive:
            return ""
        self._last, self._waiting = [token], []
        return text

    def end(self) -> str:
        """What is left when no more tokens come."""
        text = self._text()
        self._last, self._waiting = [], []
        return text

    def _text(self) -> str:
        """The text of the waiting tokens; the one before them tells that they are not the first."""
        before, both = (
            self._tokenizer.decode(ids, special=False) for ids in (self._last, self._last + self._waiting)
        )
        return both[len(before) :]
