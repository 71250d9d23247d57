"""Stitched models' files, which are always of our own type: only Longspan has them."""

from dataclasses import replace

from longspan.families.bert.files import BERT
from longspan.families.stitched.lengthen import TO_STITCHED
from longspan.families.stitched.model import StitchedConfig

STITCHED = replace(
    BERT,
    model_type="stitched",
    name="Stitched",
    own_type="longspan-stitched",
    config=StitchedConfig,
    heads={**BERT.heads, "Model": {**BERT.heads["Model"], "sif": "salience"}},
    own_modules={"sif": "salience"},
    own_only=True,
    cannot=lambda config: "blocks that are read apart",
    lengthening=TO_STITCHED,
    presets={"default": StitchedConfig(width=384, layers=6, feed_forward=1536, sif_weights=True)},
)
