// Two to four answers side by side.

import type { App } from "../app";
import type { Plan, PlanWords } from "../answers";
import { h } from "../dom";
import type { Answer } from "../engine";
import { model } from "../questions";
import { gpus, type Method, type State } from "../state";
import type { Say, Word } from "../words";
import { labelled } from "./labels";
import { exports, type Cell, type Table } from "./table";
import { withoutPin } from "./pins";

export type Planned = Answer<Plan, PlanWords>;
/// A question, and its answer or the problem it has; nothing while it is searched.
export interface Side { state: State; planned: Planned | string | undefined; isCurrent: boolean }

type Row = [Word, (words: PlanWords, json: Plan, state: State, say: Say) => Cell];
const plain = (text: string | null | undefined, value?: number | null): Cell => ({ lines: [text ?? "–"], ...(value === undefined ? {} : { value }) });

/// Names that are the same in every language.
const METHODS: Partial<Record<Method, string>> = { lora: "LoRA", qlora: "QLoRA" };

const ROWS: Row[] = [
  ["rowVerdict", ({ headline }) => ({ lines: [headline.verdict_words], tone: headline.verdict })],
  ["rowStrategy", ({ recommended }) => plain(recommended?.strategy)],
  ["rowNeed", ({ headline }, json) => plain(headline.need, json.recommended?.memory.device.expected ?? null)],
  ["rowFree", ({ headline }) => plain(headline.free)],
  ["rowHost", ({ headline }, json) => plain(headline.host, json.recommended?.memory.host.expected ?? null)],
  ["rowLength", (_, __, state) => plain(state.sequence.toLocaleString("en"), state.sequence)],
  ["rowMethod", (_, __, state, say) => plain(METHODS[state.method] ?? say("full"))],
  ["rowStep", ({ headline }, json) => plain(headline.step, json.recommended?.step_seconds?.expected ?? null)],
  ["rowRate", ({ headline }) => plain(headline.rate)],
  ["rowTokens", ({ headline }) => plain(headline.tokens)],
  ["rowDuration", ({ headline }) => plain(headline.duration)],
  ["rowHours", ({ headline }, json) => plain(headline.gpu_hours, json.cost_estimate?.gpu_hours ?? null)],
  ["rowCost", ({ headline }, json) => plain(headline.cost, json.cost_estimate?.cost ?? null)],
  ["rowWarnings", ({ warnings }, _, __, say) => ({ lines: warnings.length ? warnings.map((text) => labelled(text, say)) : ["–"] })],
];

const named = (state: State) => [model(state).name, gpus(state)];

function cell(row: Row, { planned, state }: Side, say: Say): Cell {
  if (planned === undefined) return plain("…");
  if (typeof planned === "string") return row[0] === "rowVerdict" ? plain(planned) : plain("–");
  return row[1](planned.words, planned.json, state, say);
}

export function table(sides: Side[], { say, catalogue }: App): Table {
  return {
    name: "zeropilot-compare", title: say("compare"), note: say("madeBy", { version: catalogue.version }),
    head: ["", ...sides.map((side) => named(side.state).join(", "))],
    rows: ROWS.map((row) => ({ head: say(row[0]), cells: sides.map((side) => cell(row, side, say)) })),
  };
}

export function compare(sides: Side[], app: App): HTMLElement[] {
  const { say, set } = app;
  const head = h("div", { class: "head" }, h("h2", {}, say("compare")));
  if (sides.length < 2) return [head, h("p", { class: "soft" }, say("compareLead"))];
  head.append(exports(() => table(sides, app), say));
  const { rows } = table(sides, app);
  const heads = sides.map((side, index) => {
    const [name = "", where = ""] = named(side.state);
    return h("th", { scope: "col" }, h("span", { class: "side-name" }, name), h("span", { class: "side-where" }, where),
      side.isCurrent
        ? h("span", { class: "badge" }, say("now"))
        : h("button", { type: "button", class: "small", "aria-label": say("unpin", { name: `${name}, ${where}` }), click: () => set({ pins: withoutPin(app.state, index) }) }, "✕"));
  });
  return [head, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": say("compare") },
    h("table", { class: "sides" }, h("thead", {}, h("tr", {}, h("td", {}), ...heads)),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row.head), ...row.cells.map((one) =>
        h("td", { class: one.tone ? `verdict ${one.tone}` : null }, ...one.lines.map((line) => h("span", { class: "line" }, line)))))))))];
}
