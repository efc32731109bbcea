// A plan: the recommended strategy with everything it takes to run it, and what else there is.

import type { App } from "../app";
import type { FittingStrategy, Plan, PlanWords, Remedy, Said } from "../answers";
import type { Answer } from "../engine";
import { copyButton } from "../controls";
import { h, id } from "../dom";
import type { Work } from "../questions";
import type { Method, State } from "../state";
import { labelled } from "./labels";
import { save } from "./table";

/// A strategy that is shown in place of the recommended one.
export interface Other { words: string; work: Work; config: string; isRow: boolean; back(): void }

/// GPUs of a node, where one has to be imagined.
const NODE = 8;

/// What is said of the recommended strategy; where nothing fits, what is short and what would help.
export function facts({ words }: Answer<Plan, PlanWords>, choose: (change: Partial<State>) => void, { say, state }: App): HTMLElement[] {
  const { recommended, nothing } = words;
  if (!recommended) {
    return [
      h("p", { class: "eyebrow bad" }, say("nothing")),
      ...(nothing?.limit ?? []).map((line) => h("p", {}, labelled(line, say))),
      ...offered(say("remedies"), nothing?.remedies ?? [], choose, say, state), ...offered(say("lessTrained"), nothing?.methods ?? [], choose, say, state),
    ];
  }
  return [
    h("h2", {}, say("facts")),
    h("ul", { class: "facts" }, ...recommended.lines.map((line) => h("li", {}, labelled(line, say)))),
    ...recommended.by_hand.map((line) => h("p", { class: "note" }, line)),
  ];
}

/// Remedies, with a button for those that a field makes.
function offered(title: string, remedies: Remedy[], choose: (change: Partial<State>) => void, say: App["say"], state: State): HTMLElement[] {
  if (remedies.length === 0) return [];
  const row = (remedy: Remedy) => {
    const change = changed(remedy, state);
    return h("li", {}, h("span", {}, labelled(remedy.words, say)),
      change && h("button", { type: "button", class: "small", "aria-label": `${say("apply")}: ${labelled(remedy.words, say)}`, click: () => choose(change) }, say("apply")));
  };
  return [h("p", { class: "soft" }, title), h("ul", { class: "remedies" }, ...remedies.map(row))];
}

/// What a remedy changes in the question.
function changed({ option, value }: Remedy, { count }: State): Partial<State> | undefined {
  if (value === null) return undefined;
  const number = Number(value);
  switch (option) {
    case "--host-ram": return { hostRam: value };
    case "--seq-len": return { sequence: number };
    case "--method": return { method: value as Method };
    case "--gpus": return number <= Math.max(count, NODE) ? { count: number, nodes: 1 } : { count: Math.max(count, NODE), nodes: Math.ceil(number / Math.max(count, NODE)) };
    default: return undefined;
  }
}

/// The config of a strategy: the recommended one, which has commands that start it, or another that was chosen.
export function config({ json, words }: Answer<Plan, PlanWords>, other: Other | undefined, { say }: App): HTMLElement[] {
  const text = other?.config ?? words.recommended?.config;
  if (text === undefined) return [];
  const download = h("button", { type: "button", class: "small" }, say("download"));
  download.addEventListener("click", () => {
    save("ds_config.json", new Blob([text], { type: "application/json" }));
  });
  return [
    h("div", { class: "head" }, h("h2", {}, say("config")), h("div", { class: "buttons" }, copyButton(say, () => text), download)),
    ...(other ? [h("p", { class: "note" }, say("otherShown", { strategy: other.words }), " ", words.recommended && h("button", { type: "button", class: "small", click: other.back }, say("backToRecommended")))] : []),
    h("pre", { class: "code config", tabindex: "0", role: "region", "aria-label": say("config") }, text),
    ...(other || !json.recommended ? [] : [h("h3", {}, say("launch")), launch(json.recommended.launch, say)]),
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

function rows(title: string, said: Said[], amounts: number[], open: boolean, say: App["say"], show?: (index: number) => void): HTMLElement | null {
  if (said.length === 0) return null;
  return h("details", { class: "panel others", open },
    h("summary", {}, h("h2", {}, title), h("span", { class: "badge quiet" }, String(said.length))),
    h("table", {}, h("thead", { class: "sr" }, h("tr", {}, h("th", { scope: "col" }, say("strategy")), h("th", { scope: "col" }, say("gpu")))),
      h("tbody", {}, ...said.map((one, index) => h("tr", { "data-bytes": amounts[index] }, h("th", { scope: "row" }, one.strategy), h("td", {}, one.said),
        show ? h("td", { class: "act" }, h("button", { type: "button", class: "small", "aria-label": `${say("show")}: ${one.strategy}`, click: () => show(index) }, say("show"))) : null)))));
}

export function others({ json, words }: Answer<Plan, PlanWords>, show: (fitting: FittingStrategy, words: string) => void, { say }: App): HTMLElement[] {
  const showIn = (fitting: FittingStrategy[], said: Said[]) => (index: number) => {
    const [one, own] = [fitting[index], said[index]];
    if (one && own) show(one, own.strategy);
  };
  const device = (fitting: { memory: { device: { expected: number } } }) => fitting.memory.device.expected;
  return [
    rows(say("alternatives"), words.alternatives, json.alternatives.map(device), true, say, showIn(json.alternatives, words.alternatives)),
    rows(say("fallbacks"), words.fallbacks, json.fallbacks.map(device), false, say, showIn(json.fallbacks, words.fallbacks)),
    rows(say("rejected"), words.rejected, json.rejected.map((one) => one.over_by), json.recommended === null, say),
  ].filter((element) => element !== null);
}

export function terminal(lines: string[], { say }: App): HTMLElement[] {
  return [
    h("h2", {}, say("terminal")),
    ...lines.map((line) => h("div", { class: "with-copy" }, h("pre", { class: "code wrap command", tabindex: "0", role: "region", "aria-label": `${say("terminal")}: ${line.split(" ")[1] ?? ""}` }, line), copyButton(say, () => line))),
  ];
}
