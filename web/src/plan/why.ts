// Why: when the GPU is fullest, what would lower that most, and where the time goes.

import type { App } from "../app";
import type { Memory, MemoryWords, ShareWords, Simulation, SimulationWords } from "../answers";
import { h, svg } from "../dom";
import type { Answer } from "../engine";

export function memoryReasons({ words }: Answer<Memory, MemoryWords>, { say }: App): HTMLElement {
  return h("div", {}, h("h3", {}, say("whyMemory")), h("p", {}, words.moment),
    words.savings.length > 0 && h("p", { class: "soft" }, `${say("lower")}:`),
    h("ul", { class: "savings" }, ...words.savings.map((saving) => h("li", { "data-name": saving.name }, h("strong", {}, saving.saved), h("span", {}, saving.change)))));
}

function share({ words, time, share }: ShareWords): HTMLElement {
  return h("tr", {}, h("th", { scope: "row" }, words),
    h("td", { class: "drawn" }, svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "share", "aria-hidden": "true" }, svg("rect", { width: (share * 100).toFixed(1), height: 10 }))),
    h("td", { class: "number" }, time), h("td", { class: "number" }, `${(share * 100).toFixed(0)}%`));
}

export function timeReasons({ json, words }: Answer<Simulation, SimulationWords>, { say }: App): HTMLElement {
  const { cost_estimate: bill } = json;
  return h("div", {}, h("h3", {}, say("whyTime")),
    h("p", { class: "step-takes", "data-seconds": json.step.expected }, say("stepTakes", { time: words.streams.axis.at(-1) ?? "" })),
    h("table", { class: "shares" }, h("tbody", {}, ...words.shares.map(share))),
    words.advice !== "" && h("p", {}, words.advice),
    words.cost_estimate !== null && h("p", { class: "bill", "data-hours": bill?.gpu_hours.expected, "data-cost": bill?.cost?.expected }, words.cost_estimate));
}
