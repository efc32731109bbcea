// Stages and offloads side by side against what a card has: a table whose bars are pictures of its own numbers.

import type { App } from "../app";
import type { Answer } from "../engine";
import type { ComparedDevice, Comparison, ComparisonWords, Estimate, Memory, MemoryWords, StrategyWords, Verdict } from "../answers";
import { h, svg } from "../dom";
import { bytes } from "../format";
import type { Work } from "../questions";

/// What a strategy needs.
interface Column { device: ComparedDevice; host: Pick<Estimate, "expected">; verdict: Verdict | null }

const WIDTH = 1000;
const HEIGHT = 26;

/// The parts of a column, in the order of the legend; what is no tensor is the runtime's.
function parts(column: Column, app: App): { name: string; words: string; colour: string; bytes: number }[] {
  const tensors = Object.values(column.device.at_peak).reduce((sum, part) => sum + part, 0);
  const runtime = Math.max(0, column.device.expected - tensors);
  return app.named.parts
    .map((part) => ({ ...part, bytes: part.name === "runtime" ? runtime : (column.device.at_peak[part.name] ?? 0) }))
    .filter((part) => part.bytes > 0);
}

function bar(column: Column, whole: number, capacity: number | null, app: App): SVGElement {
  const scale = (amount: number) => Math.min(amount / whole, 1) * WIDTH;
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" });
  let sum = 0;
  for (const part of parts(column, app)) {
    const left = scale(sum);
    sum += part.bytes;
    const width = scale(sum) - left;
    picture.append(svg("rect", {
      x: left.toFixed(2), width: width.toFixed(2), y: 4, height: HEIGHT - 8, fill: part.colour,
    }, svg("title", {}, `${part.words} ${bytes(part.bytes)}`)));
  }
  const { low, high } = column.device;
  picture.append(svg("rect", { class: "doubt", x: scale(low).toFixed(2), width: Math.max(1, scale(high - low)).toFixed(2), y: HEIGHT / 2 - 1, height: 2 }));
  // A bar that goes on beyond the scale is torn off.
  if (column.device.expected > whole) picture.append(svg("polygon", { class: "torn", points: `${WIDTH - 16},0 ${WIDTH - 8},7 ${WIDTH - 16},13 ${WIDTH - 8},20 ${WIDTH - 16},26 ${WIDTH},26 ${WIDTH},0` }));
  if (capacity) picture.append(svg("rect", { class: "limit", x: (scale(capacity) - 1.5).toFixed(2), width: 3, y: 0, height: HEIGHT }));
  return picture;
}

/// The strategy that is shown, with its own config: the answer to it, nothing while it is searched, null if there is none.
export type Chosen = Answer<Memory, MemoryWords> | undefined | null;

/// What choosing a row shows, and whether it is shown.
interface Choice { id: string; isShown: boolean; choose(): void }

function row(column: Column, said: Omit<StrategyWords, "config">, isChoice: boolean, scale: [number, number | null], { id, isShown, choose }: Choice, app: App): HTMLElement {
  // The name is for keys and screen readers, all of its row for pointers and fingers; on paper it stays a name.
  const keydown = (event: Event) => {
    if (!["Enter", " "].includes((event as KeyboardEvent).key)) return;
    event.preventDefault();
    choose();
  };
  const press = h("span", { role: "button", tabindex: "0", id, class: "row-name", "aria-pressed": isShown ? "true" : "false", keydown }, said.strategy);
  const click = () => { if (!getSelection()?.toString()) choose(); };
  return h("tr", { class: [isChoice && "chosen", isShown && "shown"].filter(Boolean).join(" ") || null, "data-bytes": column.device.expected, "data-host": column.host.expected, "data-verdict": column.device.verdict, click },
    h("th", { scope: "row" }, press),
    h("td", { class: "drawn" }, bar(column, ...scale, app), h("span", { class: "sr" }, parts(column, app).map((part) => `${part.words} ${bytes(part.bytes)}`).join(app.say("partsJoined")), column.device.expected > scale[0] ? `${app.say("partsJoined")}${app.say("beyond")}` : "")),
    h("td", { class: "number" }, ...said.need.split(/ (?=\()/).flatMap((piece, index) => [index > 0 && " ", h("span", { class: "whole" }, piece)])),
    h("td", { class: "number host", "data-label": app.say("host") }, said.host),
    h("td", { class: `verdict ${column.verdict ?? ""}` }, said.verdict ?? ""));
}

/// What the rows of the table do: each shows its strategy, the first one the recommended or the one that is shown in its place.
export interface Rows { shown: string; choose(strategy: StrategyWords): void; back(): void }

export function bars({ json, words }: Answer<Comparison, ComparisonWords>, work: Work, chosen: Chosen, name: string, { shown, choose, back }: Rows, app: App): HTMLElement[] {
  const { say, state } = app;
  const most = Math.max(...json.strategies.map((column) => column.device.high), json.capacity ?? 0);
  // A strategy that is far beyond the GPU would squeeze all others; it is torn off and its number says the rest.
  const whole = json.capacity ? Math.min(most, json.capacity * 1.5) * 1.02 : most * 1.02;
  const rows = json.strategies.map((column, index) => {
    const said = words.strategies[index] as StrategyWords;
    return row(column, said, false, [whole, json.capacity], { id: `row-${index}`, isShown: shown === said.strategy, choose: () => choose(said) }, app);
  });
  if (chosen) {
    const { device, host } = chosen.json;
    const verdict = [device.verdict, host.verdict].includes("does_not_fit") ? "does_not_fit" : device.verdict;
    rows.unshift(row({ device, host, verdict }, { ...chosen.words.row, strategy: name }, true, [whole, json.capacity], { id: "row-first", isShown: !json.strategies.some((_, index) => words.strategies[index]?.strategy === shown), choose: back }, app));
  } else if (chosen === undefined) rows.unshift(h("tr", { class: "chosen waiting", "aria-hidden": "true" }, h("th", { scope: "row" }, name), h("td", { class: "drawn" }, "…"), h("td", {}), h("td", { class: "host" }), h("td", {})));
  const used = new Set(json.strategies.flatMap((column) => parts(column, app).map((part) => part.name)));
  const legend = app.named.parts.filter((part) => used.has(part.name)).map((part) =>
    h("li", {}, svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, fill: part.colour })), part.words));
  // What a row holds, for those who point at it, tap it or reach it by key; it is in the row as text for screen readers.
  const told = h("p", { class: "told row-told", "aria-hidden": "true" });
  for (const element of rows) {
    const tell = () => { told.textContent = say("rowNow", { strategy: element.querySelector("th")?.textContent ?? "", parts: element.querySelector(".sr")?.textContent ?? "" }); };
    for (const event of ["pointerenter", "focusin", "click"]) element.addEventListener(event, tell);
    if (element.classList.contains("shown")) tell();
  }
  const how = say(work.checkpointing ? "recomputing" : "keeping");
  return [
    h("div", { class: "head" }, h("h2", {}, say("bars")),
      h("p", { class: "soft" }, say("barsWith", { micro: work.micro, tokens: state.sequence.toLocaleString("en"), how }))),
    json.capacity !== null && h("p", { class: "limit-label phone", "aria-hidden": "true" }, `┃ ${say("limit", { bytes: bytes(json.capacity) })}`),
    h("table", { class: "bars" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, say("strategy")),
        h("th", { scope: "col", class: "drawn" }, say("barHead"), json.capacity !== null && h("span", { class: "limit-label" }, ` ┃ ${say("limit", { bytes: bytes(json.capacity) })}`)),
        h("th", { scope: "col", class: "number" }, say("gpu")), h("th", { scope: "col", class: "number host" }, say("host")), h("th", { scope: "col" }, say("verdict")))),
      h("tbody", {}, ...rows)),
    h("ul", { class: "legend" }, ...legend),
    told,
    h("p", { class: "soft aside" }, say("buckets"), " ", say("rowsLead")),
  ].filter((element) => element !== false);
}
