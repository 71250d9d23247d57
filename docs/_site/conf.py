"""The documentation as a site: `make docs`. It is built and read without a network."""

import os
import sys
from pathlib import Path
from types import GenericAlias

import numpy.typing as npt
from sphinx.application import Sphinx
from typing_extensions import TypeAliasType

import longspan
from longspan import shapes

sys.path.insert(0, str(Path(__file__).parent))
os.environ["COLUMNS"] = "100"  # of the commands' help

# Signatures show the names of arrays' types, not what they stand for. This comes before any other import.
for name, meaning in list(vars(shapes).items()):
    if isinstance(meaning, GenericAlias):
        setattr(shapes, name, TypeAliasType(name, meaning))
vars(npt)["ArrayLike"] = TypeAliasType("ArrayLike", npt.ArrayLike)

project = "Longspan"
author = "The Longspan contributors"
release = version = longspan.__version__
copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc", "reference"]
exclude_patterns = ["_site"]
smartquotes = False  # quotation marks in docstrings are mostly Python's
highlight_language = "text"

myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4

default_role = "py:obj"  # `name` in a docstring is code, and a link where there is such a name
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
add_module_names = False

pygments_dark_style = "a11y-high-contrast-dark"

html_theme = "furo"
html_title = f"Longspan {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False


def list_decisions(_: Sphinx, page: str, source: list[str]) -> None:
    """Put the decisions below their overview, which stays plain Markdown."""
    if page == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", list_decisions)
