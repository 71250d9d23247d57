"""The families of checkpoints that Longspan reads and writes, and which of them a config belongs to."""

from dataclasses import replace
from typing import Any

from longspan.checkpoints.families import led
from longspan.checkpoints.families.bart import BART
from longspan.checkpoints.families.base import Family
from longspan.checkpoints.families.bert import BERT, CAMEMBERT, ROBERTA, XLM_ROBERTA
from longspan.checkpoints.families.bigbird import BIGBIRD
from longspan.checkpoints.families.bigbird_pegasus import BIGBIRD_PEGASUS
from longspan.checkpoints.families.distilbert import DISTILBERT
from longspan.checkpoints.families.electra import ELECTRA
from longspan.checkpoints.families.etc import ETC
from longspan.checkpoints.families.longformer import LONGFORMER, is_original
from longspan.checkpoints.families.mpnet import MPNET
from longspan.checkpoints.families.poolingformer import POOLINGFORMER
from longspan.checkpoints.families.stitched import STITCHED
from longspan.checkpoints.schema import Raw, read_own, written_own
from longspan.errors import bad
from longspan.models.bert import BertConfig
from longspan.models.bigbird import BigBirdConfig
from longspan.models.longformer import LongformerConfig
from longspan.models.seq2seq import Seq2SeqConfig
from longspan.models.task import ModelConfig

READING = (LONGFORMER, BIGBIRD, BERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, ELECTRA, MPNET, DISTILBERT)
WRITING = (led.LED, BIGBIRD_PEGASUS, BART)
"""Families with a decoder."""
FAMILIES = {family.model_type: family for family in (*READING, *WRITING)}
ALONE = (STITCHED, ETC, POOLINGFORMER)
"""Families whose models only Longspan has words for."""
WITH_DECODER = {LongformerConfig: led.LED, BigBirdConfig: BIGBIRD_PEGASUS, BertConfig: BART}
"""The family of an encoder with a decoder."""
ALONE_WITH_DECODER = replace(BART, cannot=lambda config: "such an encoder before a decoder")
OWN = {family.own_type: family for family in (LONGFORMER, BIGBIRD, BERT, MPNET, *ALONE, BART)}
READER, DECODER = "reader", "decoder"
"""Where config.json of our own models with a decoder names the encoder's type, and keeps its own fields."""


def read_config(raw: Raw) -> tuple[Family, ModelConfig]:
    """The family of a config.json and our config of it; nothing in it is acted on but known fields.

    >>> family, config = read_config({"model_type": "longformer", "attention_window": 512})
    >>> family.name, config.radius[0]
    ('Longformer', 256)
    """
    given = raw.get("model_type", _guess(raw))
    if led.is_original(raw):
        return led.LED, led.LED.read(raw)
    if is_original(raw):
        return LONGFORMER, LONGFORMER.read(raw)
    if given == ETC.model_type:  # no file of Hugging Face's says so, but see `read_raw`
        return ETC, ETC.read(raw)
    if isinstance(given, str) and given in OWN:
        config = _read_own(given, raw)
        return family_of(config, raw), config
    if not isinstance(given, str) or given not in FAMILIES:
        known = ", ".join([*FAMILIES, *OWN])
        raise bad("model_type", f"one of {known}", given, "Longspan reads these only.")
    return FAMILIES[given], FAMILIES[given].read(raw)


def _read_own(given: str, raw: Raw) -> ModelConfig:
    kind = OWN[given].kind
    if kind is not Seq2SeqConfig:
        return read_own(kind, raw)  # type: ignore[no-any-return]
    reader = raw.get(READER)
    known = [name for name, family in OWN.items() if family.kind is not Seq2SeqConfig]
    if not isinstance(reader, str) or reader not in known:
        raise bad(READER, f"one of {', '.join(known)}", reader)
    encoder = read_own(OWN[reader].kind, raw)
    return read_own(Seq2SeqConfig, raw, DECODER, encoder=encoder)  # type: ignore[no-any-return]


def own_fields(config: ModelConfig) -> dict[str, Any]:
    """What config.json of our own types holds of a config."""
    fields = {"model_type": family_of(config, {}).own_type}
    if not isinstance(config, Seq2SeqConfig):
        return written_own(config) | fields
    reader = {READER: family_of(config.encoder, {}).own_type}
    return written_own(config.encoder) | written_own(config, DECODER, "encoder") | reader | fields


def family_of(config: ModelConfig, raw: Raw) -> Family:
    """The family that a config is saved as: that of `raw`, which it was loaded from, if they agree."""
    if isinstance(config, Seq2SeqConfig):
        return WITH_DECODER.get(type(config.encoder), ALONE_WITH_DECODER)
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
