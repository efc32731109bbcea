// A plan: the recommended strategy with everything it takes to run it, and what else there is.

import type { App } from "../app";
import type { Plan, PlanWords, Said, Simulation } from "../answers";
import type { Answer } from "../engine";
import { copyButton } from "../controls";
import { h, id } from "../dom";

export function recommended({ json, words }: Answer<Plan, PlanWords>, { say }: App): HTMLElement[] {
  if (!json.recommended || !words.recommended) {
    return [
      h("p", { class: "eyebrow bad" }, say("nothing")),
      ...(words.nothing?.headline ?? []).map((line) => h("h2", {}, line)),
      ...(words.nothing?.remedy ?? []).map((line) => h("p", {}, line)),
    ];
  }
  return [
    h("p", { class: "eyebrow" }, say("recommended")),
    h("h2", { class: "strategy", "data-bytes": json.recommended.memory.device.expected, "data-host": json.recommended.memory.host.expected, "data-seconds": json.recommended.step_seconds?.expected ?? "" }, words.recommended.strategy),
    h("ul", { class: "facts" }, ...words.recommended.lines.map((line) => h("li", {}, line))),
    ...words.recommended.by_hand.map((line) => h("p", { class: "note" }, line)),
  ];
}

/// What it takes to finish.
export function bill({ cost_estimate: bill }: Simulation, words: string): HTMLElement {
  return h("p", { class: "bill", "data-hours": bill?.gpu_hours.expected, "data-cost": bill?.cost?.expected }, words);
}

export function config({ json, words }: Answer<Plan, PlanWords>, { say }: App): HTMLElement[] {
  if (!json.recommended || !words.recommended) return [];
  const text = words.recommended.config;
  const download = h("button", { type: "button", class: "small" }, say("download"));
  download.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const link = h("a", { href: address, download: "ds_config.json" });
    link.click();
    URL.revokeObjectURL(address);
  });
  return [
    h("div", { class: "head" }, h("h2", {}, say("config")), h("div", { class: "buttons" }, copyButton(say, () => text), download)),
    h("pre", { class: "code config", tabindex: "0", role: "region", "aria-label": say("config") }, text),
    h("h3", {}, say("launch")),
    launch(json.recommended.launch, say),
  ];
}

/// One launcher at a time.
function launch(commands: Record<string, string>, say: App["say"]): HTMLElement {
  const shown = h("pre", { class: "code wrap", tabindex: "0", role: "region", "aria-label": say("launch") });
  const name = id("launcher");
  const show = (launcher: string) => { shown.textContent = commands[launcher] ?? ""; };
  const buttons = Object.keys(commands).map((launcher, index) =>
    h("label", {}, h("input", { type: "radio", name, checked: index === 0, change: () => show(launcher) }), h("span", {}, launcher)));
  show(Object.keys(commands)[0] ?? "");
  return h("div", { class: "launch" },
    h("fieldset", { class: "field segments" }, h("legend", { class: "sr" }, say("launch")), h("div", {}, ...buttons)),
    h("div", { class: "with-copy" }, shown, copyButton(say, () => shown.textContent ?? "")));
}

function rows(title: string, said: Said[], amounts: number[], open: boolean, say: App["say"]): HTMLElement | null {
  if (said.length === 0) return null;
  return h("details", { class: "panel others", open },
    h("summary", {}, h("h2", {}, title), h("span", { class: "badge quiet" }, String(said.length))),
    h("table", {}, h("thead", { class: "sr" }, h("tr", {}, h("th", { scope: "col" }, say("strategy")), h("th", { scope: "col" }, say("gpu")))),
      h("tbody", {}, ...said.map((one, index) => h("tr", { "data-bytes": amounts[index] }, h("th", { scope: "row" }, one.strategy), h("td", {}, one.said))))));
}

export function others({ json, words }: Answer<Plan, PlanWords>, { say }: App): HTMLElement[] {
  const device = (fitting: { memory: { device: { expected: number } } }) => fitting.memory.device.expected;
  return [
    rows(say("alternatives"), words.alternatives, json.alternatives.map(device), true, say),
    rows(say("fallbacks"), words.fallbacks, json.fallbacks.map(device), false, say),
    rows(say("rejected"), words.rejected, json.rejected.map((one) => one.over_by), json.recommended === null, say),
  ].filter((element) => element !== null);
}

export function terminal(lines: string[], { say }: App): HTMLElement[] {
  return [
    h("h2", {}, say("terminal")),
    ...lines.map((line) => h("div", { class: "with-copy" }, h("pre", { class: "code wrap command", tabindex: "0", role: "region", "aria-label": `${say("terminal")}: ${line.split(" ")[1] ?? ""}` }, line), copyButton(say, () => line))),
  ];
}
