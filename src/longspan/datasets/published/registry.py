"""The published formats: a new one is a file beside this one and a line in FORMATS."""

from collections.abc import Collection

from longspan.datasets.published.base import Format
from longspan.datasets.published.contract_nli import CONTRACT_NLI
from longspan.datasets.published.cuad import CUAD
from longspan.datasets.published.hotpot import HOTPOT
from longspan.datasets.published.nq import NQ
from longspan.datasets.published.qmsum import QMSUM
from longspan.datasets.published.quality import QUALITY
from longspan.datasets.published.squad import SQUAD
from longspan.datasets.published.squality import SQUALITY
from longspan.datasets.published.wikihop import WIKIHOP

FORMATS = (SQUAD, NQ, CUAD, CONTRACT_NLI, HOTPOT, WIKIHOP, QUALITY, QMSUM, SQUALITY)


def format_of(keys: Collection[str]) -> Format | None:
    """The format whose records have such keys; None for plain rows.

    >>> format_of(["title", "paragraphs"]).name
    'squad'
    """
    return next((one for one in FORMATS if one.keys <= set(keys)), None)
