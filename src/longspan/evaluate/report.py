"""A page that shows every question, where its answer stands in the results, and what was found instead."""

import html
from collections.abc import Iterable, Sequence
from functools import cache

from longspan._version import __version__
from longspan.evaluate.answers import LIMITS, Outcome, summary
from longspan.evaluate.figures import Row
from longspan.evaluate.page import PAGE, SCRIPT, STYLE
from longspan.evaluate.questions import Questions, squeeze
from longspan.search.results import Hit, printable

CONTEXT, HITS, SHOWN = 240, 3, 1200
"""Characters around an answer; hits of a question, and the characters of each that are shown."""
STATES = {
    "first": f"in the first {LIMITS[0]}",
    "later": "later",
    "missed": "missed",
    "withheld": 'found, but called "no match"',
    "told": "no answer, and told so",
    "claimed": "no answer, but one claimed",
}


def page(
    tables: Sequence[Sequence[Row]], questions: Questions | None, method: str, outcomes: Sequence[Outcome]
) -> str:
    """The page: a table for each collection, and the questions as one method answered them."""
    body = "".join(_table(rows) for rows in tables)
    if questions is not None and outcomes:
        kinds = sorted({outcome.question.kind for outcome in outcomes} - {""})
        if len(kinds) > 1:
            parts = {kind: [o for o in outcomes if o.question.kind == kind] for kind in kinds}
            body += _table([summary(f"{method}, by kind", kind, part) for kind, part in parts.items()])
        cards = _Cards(questions)
        body += _controls(method, outcomes, kinds) + "".join(map(cards.card, outcomes))
    title = "How well search finds the answer"
    return PAGE.format(title=title, style=STYLE, script=SCRIPT, body=body, version=_text(__version__))


def state(outcome: Outcome) -> str:
    """One of STATES."""
    if outcome.question.document is None:
        return "claimed" if outcome.ranking.answered else "told"
    if outcome.reach is None:
        return "missed"
    if not outcome.ranking.answered:
        return "withheld"
    return "first" if outcome.reach <= LIMITS[0] else "later"


def _table(rows: Sequence[Row]) -> str:
    fullest = sorted(rows, key=lambda row: -len(row.figures))
    names = list(dict.fromkeys(name for row in fullest for name in row.figures))
    heads = "".join(f"<th scope=col>{_text(name)}</th>" for name in names)
    lines = "".join(
        f"<tr{' class=quoted' if row.published else ''}><th scope=row>{_text(row.method)}</th>"
        + "".join(_cell(row, name) for name in names)
        for row in rows
    )
    head = f"<th scope=col>{_text(rows[0].collection)}</th>{heads}"
    return f"<div class=wide><table><thead><tr>{head}</thead><tbody>{lines}</tbody></table></div>"


def _cell(row: Row, name: str) -> str:
    if name not in row.figures:
        return "<td>"
    value, note = row.figures[name], "published, not measured here"
    if name in row.intervals:
        low, high = row.intervals[name]
        note = f"{low:.2f}&thinsp;–&thinsp;{high:.2f}, n&thinsp;=&thinsp;{row.questions[name]}"
    return f"<td style='--share:{value:.3f}'><b>{value:.3f}</b><small>{note}</small>"


def _controls(method: str, outcomes: Sequence[Outcome], kinds: Iterable[str]) -> str:
    counts = {name: sum(state(outcome) == name for outcome in outcomes) for name in STATES}
    boxes = "".join(
        f"<label class={name}><input type=checkbox value={name} checked>"
        f"{_text(label)} <b>{counts[name]}</b></label>"
        for name, label in STATES.items()
        if counts[name]
    )
    options = "".join(f"<option>{_text(kind)}</option>" for kind in kinds)
    select = f"<select><option value=''>every kind</option>{options}</select>" if options else ""
    return (
        f"<h2>Every question, as {_text(method)} answers it</h2><form>"
        f"{boxes}{select}<button type=button>open or close all</button></form>"
    )


class _Cards:
    """Questions with what was found, side by side with the answer in its document."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._text_of = cache(lambda number: squeeze(questions.texts[number]))
        self._names = {number: questions.label(path) for path, number in [*questions.files.items()][::-1]}

    def card(self, outcome: Outcome) -> str:
        question, name = outcome.question, state(outcome)
        verdict = STATES[name]
        if outcome.reach is not None:
            verdict = f"at character {outcome.reach:,}, hit {outcome.rank}"
            verdict += "" if outcome.ranking.answered else ', but called "no match"'
        left = self._gold(outcome) if question.answers else "<p>Nothing in the collection answers this.</p>"
        hits = [self._hit(rank, hit, outcome) for rank, hit in enumerate(outcome.ranking.hits[:HITS], 1)]
        return (
            f"<details data-state={name} data-kind='{_text(question.kind)}'><summary>"
            f"<span class='chip {name}'>{_text(verdict)}</span> "
            f"{_text(question.text)} <small>{_text(question.id)}</small></summary>"
            f"<div class=sides><section><h3>The answer</h3>{left}</section>"
            f"<section><h3>What was found</h3>{''.join(hits) or '<p>Nothing.</p>'}</section></div></details>"
        )

    def _gold(self, outcome: Outcome) -> str:
        """The answers with some context of the right document."""
        number = outcome.question.document
        assert number is not None
        text, quotes = self._text_of(number), []
        for answer in outcome.question.answers:
            at = text.index(answer)
            start, end = max(0, at - CONTEXT), at + len(answer) + CONTEXT
            dots = "…" if start else "", "…" if end < len(text) else ""
            quotes.append(f"<blockquote>{dots[0]}{_marked(text[start:end], [answer])}{dots[1]}</blockquote>")
        return f"<p class=place>{_text(self._names[number])}</p>{''.join(quotes)}"

    def _hit(self, rank: int, hit: Hit, outcome: Outcome) -> str:
        right = self._questions.files[hit.file] == outcome.question.document
        text = squeeze(hit.text)
        cut = text[:SHOWN] + ("…" if len(text) > SHOWN else "")
        place = f"{rank}. {self._questions.label(hit.file)}, {hit.where}"
        return (
            f"<p class='place{' right' if right else ''}'>{_text(place)}"
            f" <small>score {hit.score:.3f} · {_text(hit.reason)}</small></p>"
            f"<blockquote>{_marked(cut, outcome.question.answers if right else ())}</blockquote>"
        )


def _marked(text: str, answers: Iterable[str]) -> str:
    """Escaped text with the first occurrence of each answer marked, where they do not overlap."""
    spans = sorted(
        (text.find(answer), text.find(answer) + len(answer)) for answer in answers if answer in text
    )
    parts, last = [], 0
    for start, end in spans:
        if start >= last:
            parts += [_text(text[last:start]), f"<mark>{_text(text[start:end])}</mark>"]
            last = end
    return "".join(parts) + _text(text[last:])


def _text(text: str) -> str:
    return html.escape(printable(text))
