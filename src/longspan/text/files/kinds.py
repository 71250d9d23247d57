"""The kind of a file: by its suffix, else by its first bytes."""

from pathlib import Path

from longspan.text.files.parsed import Refusal
from longspan.text.files.plain import looks_binary

HEAD = 8192
# fmt: off
PROSE = (
    ".txt", ".text", ".rst", ".adoc", ".org", ".tex",
)
DATA = (
    ".log", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".srt",
    ".vtt",
)
CODE = (
    ".py", ".pyi", ".c", ".h", ".cc", ".cpp", ".hpp", ".cu", ".java", ".kt", ".js", ".ts", ".tsx", ".jsx",
    ".css", ".go", ".rs", ".rb", ".php", ".pl", ".lua", ".sh", ".sql", ".r", ".jl", ".m", ".swift",
    ".scala", ".hs", ".ml", ".ex", ".erl", ".clj", ".lisp", ".el", ".vim", ".cmake", ".proto",
)
# fmt: on
SUFFIXES = {
    ".pdf": "pdf",
    ".docx": "docx",
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys(PROSE + DATA + CODE, "text"),
}
SIGNATURES = ((b"%PDF-", "pdf"), (b"<!doctype html", "html"), (b"<html", "html"))
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
        if start.startswith(signature.lower()):
            return kind
    if looks_binary(head):
        raise Refusal("it is not text, nor of a format that Longspan reads", REPAIR)
    return "text"
