"""What a model looks like in a notebook: its sizes, and what its layers attend to in a short document."""

from longspan import html
from longspan.families.attention_spec import AttentionSpec
from longspan.families.config import EncoderConfig
from longspan.layout import Layout
from longspan.words import numbered

LENGTH = 512
"""Tokens of the document that is drawn; short, so that it is there at once."""
MOST = 3


def model_html(kind: str, config: EncoderConfig) -> str:
    """The sizes of a model and pictures of its first attentions; no weight is read."""
    facts = [
        ("layers", config.layers),
        ("width", f"{config.width:,}"),
        ("heads", config.heads),
        ("vocabulary", f"{config.vocab_size:,}"),
        ("reads at once", f"{config.longest:,} tokens"),
    ]
    size = min(config.longest, LENGTH)
    layout = Layout.packed([size], marked=[config.usual_marks(size)])
    layers: dict[AttentionSpec, list[int]] = {}
    for number, calls in enumerate(config.attention(layout)):
        for call in calls:
            layers.setdefault(call, []).append(number)
    pictures = [
        f"<div>{numbered('layer', numbers)}, {size:,} tokens:<br/>{_picture(call)}</div>"
        for call, numbers in list(layers.items())[:MOST]
    ]
    rest = f"<div>and {len(layers) - MOST} more</div>" if len(layers) > MOST else ""
    return html.table(kind, facts) + "".join(pictures) + rest


def _picture(call: AttentionSpec) -> str:
    drawn = call.pattern.draw(call.queries, call.keys, heads=[0], style="svg")
    return html.image(drawn, repr(call.pattern))
