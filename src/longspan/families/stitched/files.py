"""Stitched models, which only Longspan has: their files are always of our own type."""

from dataclasses import replace

from longspan.checkpoints.families.bert import BERT
from longspan.models.stitched import StitchedConfig

STITCHED = replace(
    BERT,
    model_type="stitched",
    name="Stitched",
    own_type="longspan-stitched",
    kind=StitchedConfig,
    heads={**BERT.heads, "encode": {**BERT.heads["encode"], "salience": "salience"}},
    cannot=lambda config: "blocks that are read apart",
)
