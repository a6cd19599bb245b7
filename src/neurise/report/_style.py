"""How the page looks: on a desk, on a phone, in the dark and on paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c1e21; --faint: #5d646d; --line: #d9dde2; --accent: #0b62a8;
  --shade: #f5f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14161a; --ink: #e4e7eb; --faint: #a0a8b2; --line: #343a42; --accent: #6cb6ff; --shade: #1d2026; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 1rem 0 .5rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .25rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p, ul, dl { margin: .5rem 0; max-width: 46rem; }
a { color: var(--accent); }
a:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
nav ol { padding-left: 1.4rem; }
nav li { margin: .2rem 0; }
.about, .notes, figcaption, .downloads { color: var(--faint); font-size: .9rem; }
.figures { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
.figure { flex: 1 1 21rem; max-width: 32rem; min-width: 0; }
.figure.many { flex-basis: 100%; max-width: none; }
.panels { display: flex; flex-wrap: wrap; gap: 1rem 2rem; }
.panel { flex: 1 1 19rem; max-width: 32rem; margin: 0; min-width: 0; }
.panel svg { display: block; width: 100%; height: auto; }
.panel figcaption { padding-left: 2rem; font-weight: 600; }
.blocks { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
.wide { overflow-x: auto; margin: .75rem 0 1rem; max-width: 100%; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--faint); padding: 0 .3rem .35rem; }
th, td { padding: .3rem .5rem .3rem .3rem; text-align: left; vertical-align: top; white-space: nowrap; }
thead th { white-space: normal; vertical-align: bottom; }
tr > td:not(:first-child), thead th:not(:first-child) { text-align: right; padding-left: .5rem; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; }
thead th[scope=colgroup] { text-align: center; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
tbody th { font-weight: 500; }
td.paper, th.paper { background: var(--shade); }
span.floor { color: var(--faint); font-size: .8rem; font-weight: 400; white-space: nowrap; }
.samples { display: flex; flex-wrap: wrap; gap: 1.25rem; }
figure.samples { display: block; margin: 0; flex: 0 1 15rem; }
.samples img { display: block; width: 100%; height: auto; image-rendering: pixelated; background: #fff; padding: 6px;
  border: 1px solid var(--line); }
code { font: .85rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { background: var(--shade); padding: .3rem .6rem; margin: 0 0 .4rem; overflow-x: auto; white-space: pre-wrap; }
.reduced, .missing { border-left: 3px solid #c48a00; padding-left: .75rem; }
.failed { border-left: 3px solid #d55e00; padding-left: .75rem; }
dl.made { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); gap: .15rem 1rem; font-size: .9rem; }
dl.made dt { color: var(--faint); }
dl.made dd { margin: 0; min-width: 0; }
dl.made dd p { margin: 0 0 .15rem; }
@media (max-width: 34rem) {
  body { padding: .5rem 1rem 3rem; }
  h1 { font-size: 1.4rem; }
  dl.made { grid-template-columns: minmax(0, 1fr); }
  dl.made dd { margin-bottom: .4rem; }
  .samples { gap: .75rem; }
  figure.samples { flex: 1 1 9rem; max-width: 50%; }
  .wide tr > :first-child { position: sticky; left: 0; background: var(--paper); white-space: normal; max-width: 9rem; }
}
@media print {
  :root { --paper: #ffffff; --ink: #000000; --faint: #444444; --line: #bbbbbb; --accent: #000000; --shade: #f2f2f2; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .downloads { display: none; }
  h2 { break-before: page; border: 0; }
  h2, h3 { break-after: avoid; }
  .panel, figure, table, dl.made { break-inside: avoid; }
  .figure { flex: 0 0 46%; break-inside: avoid; }
  .figure.many { flex-basis: 100%; }
  .panel { flex: 0 1 46%; }
  .figure:not(.many) .panel { flex-basis: 100%; }
  .wide { overflow: visible; }
  th, td { white-space: normal; }
}
"""
