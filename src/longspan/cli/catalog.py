"""`longspan index --list` and `--show`: the user's indexes, their files, and what takes space."""

import json
from pathlib import Path

from longspan.cli.terminal import counted, say, size


def show_all(as_json: bool) -> int:
    """Print all indexes that have names."""
    from longspan.search.library import summaries
    from longspan.search.results import printable

    known = summaries()
    if as_json:
        print(json.dumps([summary._asdict() for summary in known]))
        return 0
    if not known:
        say("there are no indexes yet: `longspan index PATH...` fills the default one.")
    for summary in known:
        facts = (
            f"{counted(summary.files, 'file')}, {counted(summary.passages, 'passage')}, {size(summary.bytes)}"
        )
        facts += f", {int(100 * summary.read)}% read by {summary.model}" if summary.model else ", words only"
        print(f"{printable(summary.name)}\t{printable(summary.problem or facts)}")
    return 0


def show(folder: Path, as_json: bool) -> int:
    """Print the files of an index with size and passages, and what takes space."""
    from longspan.search.index import Index
    from longspan.search.library import Catalog, summary
    from longspan.search.results import printable

    state = summary(folder)
    with Index.open(folder) as index, Catalog(folder) as catalog:
        records, sizes = catalog.records(), index.sizes
        roots = list(map(str, catalog.roots))
    if as_json:
        files = [record._asdict() for record in records]
        print(json.dumps({**state._asdict(), "sizes": sizes, "roots": roots, "contents": files}))
        return 0
    counts = f"{counted(state.files, 'file')}, {counted(state.passages, 'passage')}"
    print(f"{printable(str(folder))}: {counts}, {int(100 * state.read)}% read by the model")
    adapter = f", adapter {state.adapter}" if state.adapter else ""
    print(f"model: {printable((state.model or 'none yet') + adapter)}")
    kinds = ", ".join(f"{name} {size(count)}" for name, count in sizes.items())
    print(f"space: {kinds}; all {size(state.bytes)}")
    for record in records:
        how = "read" if record.read else "words only so far"
        print(f"{size(record.bytes)}\t{counted(record.passages, 'passage')}\t{how}\t{printable(record.file)}")
    return 0
