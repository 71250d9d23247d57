"""How the original TensorFlow checkpoints of ETC and BigBird name their weights."""

from collections.abc import Iterable

from longspan.formats.tensorflow_names import LEAVES, torch_names

WORDS = "token_emb_lookup/embedding_table"
"""Of ETC; what stands before it is the name that a program gave to the whole model."""
LONG = "long_feed_forward_layer_", "feed_forward_layer_"
"""How ETC calls a layer of the long stream where global tokens have their own, and where they do not."""
ETC_LEAVES = {
    "embedding_table": "weight",
    "output_bias": "bias",
    "relative_emb_table": "keys",
    "relative_bias_table": "scores",
}
"""The variables of ETC's own layers."""
TABLE = "_embeddings"
"""How BigBird's variables end that are whole modules here, such as word_embeddings."""


def weight_names(variables: Iterable[str]) -> dict[str, str]:
    """What variables are called here, without those that are no weights and without the model's own name.

    >>> etc = weight_names(["etc/token_emb_lookup/embedding_table", "etc/long_feed_forward_layer_0/kernel"])
    >>> list(etc.values())
    ['token_emb_lookup.weight', 'feed_forward_layer_0.weight']
    >>> weight_names(["pegasus/embeddings/word_embeddings"])
    {'pegasus/embeddings/word_embeddings': 'pegasus.embeddings.word_embeddings.weight'}
    """
    variables = list(variables)
    prefix = next((name.removesuffix(WORDS) for name in variables if name.endswith(WORDS)), "")
    plain = {name: name.removeprefix(prefix).replace(*LONG) for name in variables}
    plain |= {name: f"{plain[name]}/embedding_table" for name in variables if name.endswith(TABLE)}
    names = torch_names(plain.values(), LEAVES | ETC_LEAVES)
    return {name: names[plain[name]] for name in variables if plain[name] in names}
