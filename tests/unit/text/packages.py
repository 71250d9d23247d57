"""Small real office documents, books, mails and notebooks, written by hand."""

import json
import zipfile
from collections.abc import Mapping, Sequence

from unit.text.files import CORE, zipped

ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATION = 'xmlns:r="' + OFFICE + '"'


def odt(body: str, title: str = "", prolog: str = "") -> bytes:
    """An OpenDocument with this XML in its body."""
    content = f"{prolog}<office:document {ODF}><office:body>{body}</office:body></office:document>"
    return zipped({"content.xml": content, "meta.xml": f"<m><title>{title}</title></m>"})


def epub(chapters: Mapping[str, str], title: str = "", spine: Sequence[str] = ()) -> bytes:
    """A book with these chapters, read in the order of `spine`."""
    items = "".join(
        f'<item id="i{i}" href="{name}.xhtml" media-type="application/xhtml+xml"/>'
        for i, name in enumerate(chapters)
    )
    order = "".join(f'<itemref idref="i{list(chapters).index(name)}"/>' for name in spine or chapters)
    container = '<container><rootfiles><rootfile full-path="OEBPS/a.opf"/></rootfiles></container>'
    parts = f"<metadata><title>{title}</title></metadata><manifest>{items}</manifest><spine>{order}</spine>"
    pages = {f"OEBPS/{name}.xhtml": text for name, text in chapters.items()}
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "OEBPS/a.opf": f"<package>{parts}</package>",
    }
    return zipped(members | pages, zipfile.ZIP_STORED)


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """By its id, the kind and the target of each relation."""
    lines = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f"<Relationships>{lines}</Relationships>"


def pptx(slides: Sequence[str], title: str = "", notes: str = "", hidden_slides: Sequence[int] = ()) -> bytes:
    """A presentation whose slides hold this XML; the notes belong to the first."""
    shown = {number: "" if number + 1 not in hidden_slides else ' show="0"' for number in range(len(slides))}
    ids = "".join(f'<p:sldId id="{256 + i}" r:id="r{i}"/>' for i in range(len(slides)))
    members = {
        "ppt/presentation.xml": f'<p:presentation xmlns:p="p" {RELATION}>{ids}</p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(
            {f"r{i}": ("slide", f"slides/s{i}.xml") for i in range(len(slides))}
        ),
        "docProps/core.xml": CORE.format(title),
        **{
            f"ppt/slides/s{i}.xml": f'<p:sld xmlns:p="p" xmlns:a="a"{shown[i]}>{s}</p:sld>'
            for i, s in enumerate(slides)
        },
    }
    if notes:
        members["ppt/slides/_rels/s0.xml.rels"] = relations({"n": ("notesSlide", "../notes/n.xml")})
        members["ppt/notes/n.xml"] = f'<p:notes xmlns:p="p" xmlns:a="a">{notes}</p:notes>'
    return zipped(members)


def shape(text: str, kind: str = "body") -> str:
    paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f'<p:sp><p:nvPr><p:ph type="{kind}"/></p:nvPr><p:txBody>{paragraphs}</p:txBody></p:sp>'


def xlsx(
    sheets: Mapping[str, str], strings: Sequence[str] = (), prolog: str = "", hidden: Sequence[str] = ()
) -> bytes:
    """A workbook whose sheets hold this XML; cells of style 1 are dates."""
    state = {name: ' state="hidden"' if name in hidden else "" for name in sheets}
    names = "".join(
        f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"{state[name]}/>' for i, name in enumerate(sheets)
    )
    targets = {f"r{i}": ("worksheet", f"worksheets/s{i}.xml") for i in range(len(sheets))}
    targets |= {"s": ("sharedStrings", "sharedStrings.xml"), "t": ("styles", "styles.xml")}
    styles = (
        '<numFmts><numFmt numFmtId="165" formatCode="dd/mm/yy"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="165"/></cellXfs>'
    )
    return zipped(
        {
            "xl/workbook.xml": f"<workbook {RELATION}><sheets>{names}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(targets),
            "xl/sharedStrings.xml": f"<sst>{''.join(f'<si><t>{text}</t></si>' for text in strings)}</sst>",
            "xl/styles.xml": f"<styleSheet>{styles}</styleSheet>",
            **{
                f"xl/worksheets/s{i}.xml": f"{prolog}<worksheet><sheetData>{rows}</sheetData></worksheet>"
                for i, rows in enumerate(sheets.values())
            },
        }
    )


def notebook(cells: Sequence[tuple[str, str]], outputs: Sequence[object] = ()) -> bytes:
    """A notebook of these cells, each a kind and a source; the outputs belong to the last."""
    written: list[dict[str, object]] = [
        {"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in cells
    ]
    written[-1]["outputs"] = list(outputs)
    return json.dumps({"cells": written, "nbformat": 4}).encode()
