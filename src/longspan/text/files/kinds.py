"""The kind of a file: by its suffix, else by its first bytes."""

from pathlib import Path

from longspan.text.files.parsed import Refusal
from longspan.text.files.plain import looks_binary

HEAD = 8192
# fmt: off
PROSE = (".txt", ".text", ".rst", ".adoc", ".org", ".tex")
DATA = (
    ".log", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf",
    ".properties", ".srt", ".vtt", ".bib",
)
CODE = (
    ".py", ".pyi", ".pyx", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hxx", ".cu", ".cuh", ".java",
    ".kt", ".kts", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".vue", ".svelte", ".css",
    ".scss", ".less", ".go", ".rs", ".rb", ".php", ".pl", ".pm", ".lua", ".sh", ".bash", ".zsh",
    ".fish", ".ps1", ".bat", ".cmd", ".sql", ".r", ".jl", ".m", ".mm", ".swift", ".scala", ".hs", ".ml",
    ".mli", ".ex", ".exs", ".erl", ".clj", ".lisp", ".el", ".scm", ".rkt", ".vim", ".cmake", ".mk",
    ".proto", ".dart", ".zig", ".nim", ".cs", ".fs", ".fsx", ".vb", ".d", ".asm", ".s", ".f", ".f90",
    ".f95", ".for", ".pas", ".v", ".sv", ".vhd", ".vhdl", ".tf", ".gradle", ".groovy", ".sol",
    ".graphql", ".thrift", ".tcl", ".awk", ".sed", ".diff", ".patch", ".j2", ".jinja", ".tmpl", ".ejs",
    ".erb", ".hbs", ".mustache",
)
# fmt: on
PICTURE = "picture"
RECOGNIZED = (PICTURE, "pdf")
"""Kinds in which text may be recognized (OCR)."""
AS_THEY_ARE = ("text", "markdown")
"""Kinds whose characters are the file's own; every other kind is parsed in a child process."""
SUFFIXES = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".xlsx": "xlsx",
    **dict.fromkeys((".odt", ".odp", ".ods"), "odt"),
    ".rtf": "rtf",
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"), PICTURE),
    ".epub": "epub",
    ".eml": "eml",
    ".ipynb": "ipynb",
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys(PROSE + DATA + CODE, "text"),
}
PARSED = frozenset(SUFFIXES.values()).difference(AS_THEY_ARE)
SIGNATURES = (
    (b"%PDF-", "pdf"),
    (b"<!doctype html", "html"),
    (b"<html", "html"),
    (b"{\\rtf", "rtf"),
)
MIMETYPES = ((b"application/epub+zip", "epub"), (b"application/vnd.oasis.opendocument", "odt"))
REPAIR = "Save it as text, Markdown, HTML, PDF or DOCX."


def kind_of(path: Path, head: bytes) -> str:
    """The kind of a file that begins with `head`; files of other formats are refused.

    >>> kind_of(Path("report.PDF"), b""), kind_of(Path("LICENSE"), b"Apache License")
    ('pdf', 'text')
    """
    known = SUFFIXES.get(path.suffix.lower())
    if known:
        return known
    start = head.lstrip()[:20].lower()
    for signature, kind in SIGNATURES:
        if start.startswith(signature):
            return kind
    if head.startswith(b"PK\3\4"):
        for mimetype, kind in MIMETYPES:  # the first member of such a package names its format
            if mimetype in head[:100]:
                return kind
    if looks_binary(head):
        raise Refusal("it is not text, nor of a format that Longspan reads", REPAIR)
    return "text"
