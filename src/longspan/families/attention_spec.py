"""The attentions of a model's layers as data: the forward pass, pictures and cost reports all read this."""

from dataclasses import dataclass

from longspan.engine.labels import Labels
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.patterns.to_untagged import ToUntagged

UNSEEN = "unseen"
"""The tag of rows that see others, but are not seen."""


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """One attention of a layer: which queries see which keys, by which pattern."""

    name: str
    "Its role in the model, such as window, global rows or pooled."
    pattern: Pattern
    queries: Layout
    keys: Layout
    pooled: tuple[int, int] | None = None
    "Kernel and stride, if the keys are slots pooled from the output of the layer's attentions before it."
    summary: str = ""
    "What it lets tokens see, in a sentence; by default the pattern explains itself."

    @classmethod
    def within(cls, name: str, pattern: Pattern, layout: Layout, summary: str = "") -> "AttentionSpec":
        """The attention among the rows of one layout."""
        return cls(name=name, pattern=pattern, queries=layout, keys=layout, summary=summary)

    def plan(self, heads: int, labels: Labels | None = None) -> Plan:
        """The compiled pattern, without keys that are tagged as unseen; equal specs share one plan."""
        hides = UNSEEN in self.keys.sites.tags
        pattern = self.pattern & ToUntagged(UNSEEN) if hides else self.pattern
        return plan(pattern, self.queries, self.keys, heads=heads, labels=labels)


LayerSpecs = tuple[tuple[AttentionSpec, ...], ...]
"""The attentions of each layer, first layer first."""
