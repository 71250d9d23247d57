"""The families of checkpoints that Longspan reads and writes, and which of them a config belongs to."""

from longspan.checkpoints.families.base import Family
from longspan.checkpoints.families.bert import BERT, CAMEMBERT, ROBERTA, XLM_ROBERTA
from longspan.checkpoints.families.bigbird import BIGBIRD
from longspan.checkpoints.families.distilbert import DISTILBERT
from longspan.checkpoints.families.electra import ELECTRA
from longspan.checkpoints.families.etc import ETC
from longspan.checkpoints.families.longformer import LONGFORMER, is_original
from longspan.checkpoints.families.mpnet import MPNET
from longspan.checkpoints.families.poolingformer import POOLINGFORMER
from longspan.checkpoints.families.stitched import STITCHED
from longspan.checkpoints.schema import Raw, read_own
from longspan.errors import bad
from longspan.models.config import EncoderConfig

FAMILIES = {
    family.model_type: family
    for family in (LONGFORMER, BIGBIRD, BERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, ELECTRA, MPNET, DISTILBERT)
}
ALONE = (STITCHED, ETC, POOLINGFORMER)
"""Families whose models only Longspan has words for."""
OWN = {family.own_type: family for family in (LONGFORMER, BIGBIRD, BERT, MPNET, *ALONE)}


def read_config(raw: Raw) -> tuple[Family, EncoderConfig]:
    """The family of a config.json and our config of it; nothing in it is acted on but known fields.

    >>> family, config = read_config({"model_type": "longformer", "attention_window": 512})
    >>> family.name, config.radius[0]
    ('Longformer', 256)
    """
    given = raw.get("model_type", _guess(raw))
    if is_original(raw):
        return LONGFORMER, LONGFORMER.read(raw)
    if given == ETC.model_type:  # no file of Hugging Face's says so, but see `read_raw`
        return ETC, ETC.read(raw)
    if isinstance(given, str) and given in OWN:
        config = read_own(OWN[given].kind, raw)
        return family_of(config, raw), config
    if not isinstance(given, str) or given not in FAMILIES:
        known = ", ".join([*FAMILIES, *OWN])
        raise bad("model_type", f"one of {known}", given, "Longspan reads these only.")
    return FAMILIES[given], FAMILIES[given].read(raw)


def family_of(config: EncoderConfig, raw: Raw) -> Family:
    """The family that a config is saved as: that of `raw`, which it was loaded from, if they agree."""
    for family in ALONE:
        if type(config) is family.kind:
            return family
    wide = config.position_offset > 0
    for name in (raw.get("model_type"), "longformer", "big_bird", "mpnet", "roberta" if wide else "bert"):
        named = FAMILIES.get(name) if isinstance(name, str) else None
        if named is None or named.read_only or named.kind is not type(config):
            continue
        if named.kind is not BERT.kind or named.offset == wide:
            return named
    raise bad("config", f"one of {', '.join(f.kind.__name__ for f in OWN.values())}", type(config).__name__)


def _guess(raw: Raw) -> str | None:
    """Files before 2020 name no model type, but a class."""
    given = raw.get("architectures")
    first = given[0] if isinstance(given, list) and given and isinstance(given[0], str) else ""
    return next((kind for kind, family in FAMILIES.items() if first.startswith(family.name)), None)
