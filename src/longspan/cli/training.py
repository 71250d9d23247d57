"""Options of the training loop, the same for every recipe."""

import argparse
from typing import TYPE_CHECKING, TypedDict

from longspan.cli.options import count
from longspan.cli.terminal import is_quiet

if TYPE_CHECKING:
    from longspan.training.checkpoint import Saving


class Shaping(TypedDict):
    """What shapes the weights."""

    micro_tokens: int
    gradient_checkpointing: bool
    dtype: str
    on_nan: str
    seed: int


class Running(TypedDict):
    """And what does not."""

    saving: "Saving"
    fsdp: bool
    tensorboard: bool
    progress: bool | None


def add_loop(verb: argparse.ArgumentParser, *, lr: str, micro_tokens: int) -> None:
    """Declare them; `lr` says what the learning rate is by default."""
    option = verb.add_argument_group("training loop").add_argument
    at_once = f"tokens computed at once (default: {micro_tokens})"
    option("--lr", type=float, metavar="RATE", help=f"learning rate (default: {lr})")
    option("--micro-tokens", type=count, default=micro_tokens, metavar="N", help=at_once)
    option("--gradient-checkpointing", action="store_true", help="compute twice, to need less memory")
    option("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the computation")
    option("--on-nan", choices=("stop", "skip", "rollback"), default="stop", help="if a loss is no number")
    option("--save-minutes", type=float, default=10.0, metavar="M", help="between checkpoints (default: 10)")
    option("--tensorboard", action="store_true", help="write curves for TensorBoard, too")
    option("--fsdp", action="store_true", help="let processes of torchrun share weights, too")
    option("--seed", type=int, default=0, metavar="N", help="of weights, masks and data order (default: 0)")


def shaping(arguments: argparse.Namespace) -> Shaping:
    """Fields of a recipe's settings."""
    return {
        "micro_tokens": arguments.micro_tokens,
        "gradient_checkpointing": arguments.gradient_checkpointing,
        "dtype": arguments.dtype,
        "on_nan": arguments.on_nan,
        "seed": arguments.seed,
    }


def running(arguments: argparse.Namespace) -> Running:
    """What the loop is told beside them."""
    from longspan.training.checkpoint import Saving

    return {
        "saving": Saving(minutes=arguments.save_minutes),
        "fsdp": arguments.fsdp,
        "tensorboard": arguments.tensorboard,
        "progress": False if is_quiet() else None,
    }
