"""The frame of the report: HTML, style and script, with nothing from elsewhere."""

PAGE = """<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>
<meta name=viewport content="width=device-width"><meta name=color-scheme content="light dark">
<meta http-equiv=Content-Security-Policy content="default-src 'none'; style-src 'unsafe-inline';
script-src 'unsafe-inline'"><style>{style}</style>
<main><h1>{title}</h1>
<p>An answer counts within the first 600, 1,800 and 3,600 characters of the results, read in order. Below
each share stand its 95&thinsp;% bootstrap interval and the number of questions.</p>
{body}<footer>longspan {version}, <code>longspan eval search</code></footer></main>
<script>{script}</script></html>
"""
STYLE = """
:root { --ink: #1d2329; --dim: #66707a; --paper: #fbfbf9; --card: #fff; --line: #dfe3e6; --bar: #8fbce6;
  --good: #1a7f45; --fair: #96690a; --poor: #b3352b; --mark: #ffe58a }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --dim: #98a2ac; --paper: #14171a;
  --card: #1c2024; --line: #343a40; --bar: #38678f;
  --good: #58c486; --fair: #dcb04b; --poor: #f0857b; --mark: #6b5710 } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1180px; margin: 0 auto; padding: 1rem 1.2rem 3rem }
h1 { font-size: 1.6rem; margin: .6rem 0 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem }
h3, thead { font-size: .85rem; font-weight: 600; color: var(--dim); margin: .2rem 0 .4rem }
small, footer { color: var(--dim); font-size: .8rem; font-weight: normal }
.wide, details { background: var(--card); border: 1px solid var(--line); border-radius: 8px }
.wide { overflow-x: auto; margin: 1rem 0 } details { margin: .4rem 0 }
table { border-collapse: collapse; width: 100% }
th { text-align: left; font-weight: 600; padding: .45rem .7rem }
td { padding: .45rem .7rem .6rem; min-width: 6.5rem;
  background: linear-gradient(var(--bar), var(--bar)) 0 100% / calc(var(--share) * 7rem) 3px no-repeat;
  background-position: .7rem calc(100% - .2rem) }
td b { display: block; font-variant-numeric: tabular-nums } td small { white-space: nowrap }
td:empty { background: none } .quoted { font-style: italic }
tbody tr > * { border-top: 1px solid var(--line) }
form { display: flex; flex-wrap: wrap; gap: .5rem 1.1rem; align-items: center; margin-bottom: .8rem }
form input { margin: 0 .35rem 0 0; vertical-align: -1px }
select, button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: .15rem .6rem }
summary { cursor: pointer; padding: .5rem .8rem }
details[open] summary { border-bottom: 1px solid var(--line) }
.chip { display: inline-block; min-width: 11.5rem; font-size: .85rem; font-weight: 600 }
.first, .told { color: var(--good) }
.later, .withheld { color: var(--fair) }
.missed, .claimed { color: var(--poor) }
.sides { display: grid; grid-template-columns: 2fr 3fr; gap: 0 1.6rem; padding: .7rem .9rem }
@media (max-width: 760px) { .sides { grid-template-columns: 1fr } .chip { display: block } }
blockquote { margin: .1rem 0 .9rem; padding-left: .8rem; border-left: 3px solid var(--line);
  overflow-wrap: anywhere }
.place { margin: 0; font-weight: 600; font-size: .9rem; overflow-wrap: anywhere }
.right { color: var(--good) }
mark { background: var(--mark); color: inherit; border-radius: 3px; padding: 0 .1em }
"""
SCRIPT = """
const form = document.querySelector("form"), cards = [...document.querySelectorAll("details")];
form?.addEventListener("change", () => {
  const on = new Set([...form.querySelectorAll("input:checked")].map(box => box.value));
  const kind = form.querySelector("select")?.value;
  for (const card of cards) card.hidden = !on.has(card.dataset.state) || (kind && card.dataset.kind !== kind);
});
form?.querySelector("button").addEventListener("click", () => {
  const open = cards.some(card => !card.hidden && !card.open);
  for (const card of cards) card.open = open;
});
"""
