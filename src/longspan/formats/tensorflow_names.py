"""Variables of TensorFlow by the names and shapes that torch would give them."""

from torch import Tensor

from longspan.errors import refused
from longspan.formats.safetensors import Part

WORDS = "token_emb_lookup/embedding_table"
"""Of ETC; what stands before it is the name that a program gave to the whole model."""
LEAVES = {
    "kernel": "weight",
    "embedding_table": "weight",
    "gamma": "weight",
    "beta": "bias",
    "bias": "bias",
    "output_bias": "bias",
    "relative_emb_table": "keys",
    "relative_bias_table": "scores",
}
"""How a layer's variables are called there and here; all others, such as an optimizer's, are no weights."""
TABLE = "_embeddings"
"""How variables end that are whole modules here, such as BigBird's word_embeddings."""
LONG = "long_feed_forward_layer_", "feed_forward_layer_"
"""How ETC calls a layer of the long stream where global tokens have their own, and where they do not."""


def in_torch_names(part: Part, place: object) -> Part:
    """The weights with dots between modules and without the model's own name; kernels are transposed."""
    prefix = next((name.removesuffix(WORDS) for name in part.shapes if name.endswith(WORDS)), "")
    theirs: dict[str, str] = {}
    for name in part.shapes:
        ours = torch_name(name, prefix)
        if ours in theirs:
            raise refused(place, f"{name!r} and {theirs[ours]!r} are the same weight")
        if ours is not None:
            theirs[ours] = name

    def read(ours: str) -> Tensor:
        found = part.read(theirs[ours])
        return found.movedim(0, -1) if _is_kernel(theirs[ours]) else found

    shapes = {ours: part.shapes[name] for ours, name in theirs.items()}
    for ours, name in theirs.items():
        if _is_kernel(name):
            shape, dtype = shapes[ours]
            shapes[ours] = (*shape[1:], *shape[:1]), dtype
    return Part(shapes, read)


def torch_name(name: str, prefix: str) -> str | None:
    """What a variable would be called, None if it is no weight.

    >>> torch_name("etc/feed_forward_layer_0/dense_layers/layer_1/kernel", "etc/")
    'feed_forward_layer_0.dense_layers.layer_1.weight'
    >>> torch_name("etc/feed_forward_layer_0/dense_layers/layer_1/kernel/adam_m", "etc/")
    >>> torch_name("pegasus/embeddings/word_embeddings", "")
    'pegasus.embeddings.word_embeddings.weight'
    """
    module, _, leaf = name.removeprefix(prefix).replace(*LONG).rpartition("/")
    if leaf.endswith(TABLE):
        module, leaf = f"{module}/{leaf}", "embedding_table"
    return f"{module.replace('/', '.')}.{LEAVES[leaf]}" if leaf in LEAVES else None


def _is_kernel(name: str) -> bool:
    return name.endswith("/kernel")
