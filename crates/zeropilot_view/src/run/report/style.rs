//! How the page looks: light and dark, wide and narrow, without anything from elsewhere.

pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#5b6571;--line:#d8dee6;--soft:#f4f6f9;--paper:#fff;\
--good:#0a7d4f;--bad:#c62828;--c0:#2563eb;--c1:#c2410c;--c2:#0f766e;--c3:#9333ea;--c4:#be185d;--c5:#4d7c0f;--c6:#0369a1;--c7:#854d0e}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa4b0;--line:#343b44;--soft:#1d2229;--paper:#14181d;\
--good:#3ecf8e;--bad:#ff6b6b;--c0:#6ea8fe;--c1:#fb923c;--c2:#2dd4bf;--c3:#c084fc;--c4:#f472b6;--c5:#a3e635;--c6:#38bdf8;--c7:#facc15}}\
*{box-sizing:border-box}body{font:15px/1.55 system-ui,\"Noto Sans CJK SC\",sans-serif;max-width:860px;margin:2rem auto;padding:0 1rem;\
background:var(--paper);color:var(--ink)}h1{font-size:1.3rem;margin:0 0 .8rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:2rem 0 .5rem}\
code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}code{overflow-wrap:anywhere}\
pre{overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;max-height:24rem;margin:.5rem 0;padding:.7rem .9rem;background:var(--soft);\
border:1px solid var(--line);border-radius:6px}\
.verdict{margin:0;padding:.8rem 1rem;border-left:5px solid var(--bad);background:var(--soft);border-radius:0 6px 6px 0}\
.verdict.good{border-color:var(--good)}.verdict.open{border-color:var(--dim)}.verdict strong{font-size:1.05rem}\
.facts{display:grid;grid-template-columns:repeat(4,1fr);gap:.6rem;margin:1rem 0;padding:0}\
.facts div{padding:.5rem .7rem;border:1px solid var(--line);border-radius:6px}.facts dt{color:var(--dim);font-size:12.5px}\
.facts dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}\
figure{margin:1.2rem 0}figcaption{font-weight:600;margin-bottom:.3rem}svg{display:block;width:100%;height:auto}\
svg.narrow{display:none}.grid{stroke:var(--line)}.axis{font-size:12px;fill:var(--dim)}.curve{fill:none;stroke-width:1.8;stroke-linejoin:round}\
.faint{opacity:.35}.dashed{stroke-dasharray:6 4}.mark{stroke:var(--dim);stroke-dasharray:2 3}\
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-size:13px;margin:.3rem 0;color:var(--dim)}.legend i{display:inline-block;width:14px;\
height:3px;margin-right:.35rem;vertical-align:middle;border-radius:2px}\
table{border-collapse:collapse;width:100%;font-size:14px}td,th{padding:.3rem .7rem .3rem 0;vertical-align:top;text-align:left;border-top:1px solid var(--line);\
overflow-wrap:anywhere}th{color:var(--dim);font-weight:500;border-top:0}td:first-child{white-space:nowrap;color:var(--dim);font-variant-numeric:tabular-nums}\
td.log{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}ul{padding-left:1.2rem;margin:.4rem 0}.attempts{list-style:none;padding:0}.attempts li{margin:.5rem 0}footer{margin:2.5rem 0 1rem;color:var(--dim);font-size:12.5px}\
@media(max-width:600px){.facts{grid-template-columns:repeat(2,1fr)}body{margin:1rem auto}svg.wide{display:none}svg.narrow{display:block}}";
