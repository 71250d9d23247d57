"""All families: a new one is a folder beside this file and a line in FAMILIES."""

from dataclasses import fields, replace
from typing import Any

from longspan.errors import bad
from longspan.families.bart.files import BART
from longspan.families.base import Family, ModelConfig, stated_class
from longspan.families.bert.files import BERT
from longspan.families.bigbird.files import BIGBIRD
from longspan.families.bigbird_pegasus.files import BIGBIRD_PEGASUS
from longspan.families.char_lm.files import CHAR_LM
from longspan.families.distilbert.files import DISTILBERT
from longspan.families.electra.files import ELECTRA
from longspan.families.etc.files import ETC
from longspan.families.eurobert.files import EUROBERT
from longspan.families.gemma3.files import GEMMA3
from longspan.families.gte.files import GTE
from longspan.families.jina_bert.files import JINA_BERT
from longspan.families.jina_embeddings_v3.files import JINA_EMBEDDINGS_V3
from longspan.families.led.files import LED
from longspan.families.lengthening import Lengthening
from longspan.families.longformer.files import LONGFORMER
from longspan.families.modernbert.files import MODERNBERT
from longspan.families.mpnet.files import MPNET
from longspan.families.nomic_bert.files import NOMIC_BERT
from longspan.families.poolingformer.files import POOLINGFORMER
from longspan.families.roberta.files import CAMEMBERT, ROBERTA, XLM_ROBERTA
from longspan.families.scaling import ROPE
from longspan.families.schema import DISK_NAMES, Raw, read_own, write_own
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.families.stitched.files import STITCHED

FAMILIES: tuple[Family, ...] = (
    STITCHED,
    LONGFORMER,
    BIGBIRD,
    ETC,
    POOLINGFORMER,
    MODERNBERT,
    NOMIC_BERT,
    GTE,
    JINA_EMBEDDINGS_V3,
    JINA_BERT,
    EUROBERT,
    GEMMA3,
    BERT,
    ROBERTA,
    XLM_ROBERTA,
    CAMEMBERT,
    MPNET,
    ELECTRA,
    DISTILBERT,
    CHAR_LM,
)
"""Encoders; of several for one config class the first is what a new model is saved as."""
DECODER_FAMILIES = (LED, LONGFORMER), (BIGBIRD_PEGASUS, BIGBIRD), (BART, BERT)
"""Families with a decoder, and whose encoder they have."""
READER, DECODER = "reader", "decoder"
"""Where config.json of our own models with a decoder names the encoder's type, and keeps its own fields."""


def all_families() -> tuple[Family, ...]:
    """Those without and those with a decoder."""
    return (*FAMILIES, *(family for family, _ in DECODER_FAMILIES))


def presets() -> dict[str, ModelConfig]:
    """Well-known models by name, as configs."""
    return {name: config for family in all_families() for name, config in family.presets.items()}


def lengthenings() -> dict[str, Lengthening]:
    """The ways to make a short model long, by name."""
    ways = [family.lengthening for family in FAMILIES if family.lengthening is not None] + [ROPE]
    return {way.name: way for way in sorted(ways, key=lambda way: way.name != "longformer")}


def by_model_type() -> dict[str, Family]:
    """The families that Hugging Face has, by their model type."""
    return {family.model_type: family for family in all_families() if not family.own_only}


def is_own(raw: Raw) -> bool:
    """Whether a config.json is of one of our own types."""
    stated = raw.get("model_type")
    return isinstance(stated, str) and stated in _own_types()


def _own_types() -> dict[str, Family]:
    types: dict[str, Family] = {}
    for family in all_families():
        types.setdefault(family.own_type, family)
    return types


def read_config(raw: Raw) -> tuple[Family, ModelConfig]:
    """The family of a config.json and our config of it; no field is acted on but known ones.

    >>> family, config = read_config({"model_type": "longformer", "attention_window": 512})
    >>> family.name, config.radius[0]
    ('Longformer', 256)
    """
    original = [family for family in all_families() if family.is_original(raw)]
    if original:
        return original[-1], original[-1].read(raw)  # a decoder's family knows its encoder's fields, too
    stated = raw.get("model_type", _guess(raw))
    if is_own(raw):
        config = _read_own(str(stated), raw)
        return family_of(config, raw), config
    families = by_model_type()
    if not isinstance(stated, str) or stated not in families:
        known = ", ".join([*families, *_own_types()])
        raise bad("model_type", f"one of {known}", stated, "Longspan reads these only.")
    return families[stated], families[stated].read(raw)


def _read_own(stated: str, raw: Raw) -> ModelConfig:
    types = _own_types()
    if not types[stated].config.has_decoder:
        config: ModelConfig = _read_encoder(stated, raw)
        return config
    reader = raw.get(READER)
    known = [name for name, family in types.items() if not family.config.has_decoder]
    if not isinstance(reader, str) or reader not in known:
        raise bad(READER, f"one of {', '.join(known)}", reader)
    return read_own(Seq2SeqConfig, raw, DECODER, encoder=_read_encoder(reader, raw))


def _read_encoder(own_type: str, raw: Raw) -> Any:
    """The config of an encoder; files written before `head_style` say it in other ways."""
    stored = raw.get("encoder")
    family = _own_types()[own_type]
    if isinstance(stored, dict) and "head_style" not in stored:
        kept = {name: value for name, value in stored.items() if name != "bert_heads"}
        stored = kept | {"head_style": family.heads_in_old_files(stored)}
    alike = [one for one in FAMILIES if one.own_type == own_type]
    style = stored.get("head_style") if isinstance(stored, dict) else None
    family = next((one for one in alike if one.head_style == style), family)
    return read_own(family.config, {**raw, "encoder": stored})


def stated_fields(config: ModelConfig) -> dict[str, Any]:
    """The fields that shape a vector and are not as usual, by the names that our files have for them."""
    usual = fields(_own_types()[family_of(config, {}).own_type].config)
    return {
        DISK_NAMES.get(field.name, field.name): value
        for field in usual
        if field.name != "head_style" and (value := getattr(config, field.name)) != field.default
    }


def own_fields(config: ModelConfig) -> dict[str, Any]:
    """What config.json of our own types holds of a config."""
    kind = {"model_type": family_of(config, {}).own_type}
    if not config.has_decoder:
        return write_own(config) | kind
    reader = {READER: family_of(config.encoder, {}).own_type}
    return write_own(config.encoder) | write_own(config, DECODER, "encoder") | reader | kind


def family_of(config: ModelConfig, raw: Raw) -> Family:
    """The family that a config is saved as: that of `raw`, which it was loaded from, if they agree."""
    if config.has_decoder:
        reads = family_of(config.encoder, {})
        alone = replace(BART, cannot=lambda config: "such an encoder before a decoder")
        return next((family for family, encoder in DECODER_FAMILIES if encoder is reads), alone)
    kin = [one for one in FAMILIES if one.config is type(config) and not one.read_only]
    if not kin:
        known = ", ".join(one.config.__name__ for one in _own_types().values())
        raise bad("config", f"one of {known}", type(config).__name__)
    return next((one for one in kin if one.model_type == raw.get("model_type")), kin[0])


def _guess(raw: Raw) -> str | None:
    """Files before 2020 name no model type, but a class."""
    first = stated_class(raw) or ""
    return next((one.model_type for one in all_families() if first.startswith(one.name)), None)
