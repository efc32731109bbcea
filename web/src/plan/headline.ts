// The answer in the few words that are read first.

import type { App } from "../app";
import type { HeadlineWords, Plan, PlanWords, Verdict } from "../answers";
import { h, svg } from "../dom";
import type { Answer } from "../engine";
import { bytes } from "../format";
import { model } from "../questions";
import { labelled } from "./labels";
import { gpus } from "../state";

const SIGNS: Record<Verdict, string> = { fits: "✓", low_headroom: "!", may_not_fit: "?", does_not_fit: "✕" };
const NOTHING_YET = "…";

interface Tile { name: string; value: string; label: string }

function tiles(json: Plan | undefined, said: HeadlineWords | undefined, { say, state }: App): Tile[] {
  const hours = said?.gpu_hours;
  const host = json?.limits.includes("host") ? json.host_ram_needed : null;
  const isOpen = said === undefined;
  return [
    host !== null
      ? { name: "host", value: bytes(host), label: say("hostNeeded") }
      : { name: "free", value: said?.free ?? said?.lacks ?? NOTHING_YET, label: say(said?.lacks ? "perGpuLacks" : "perGpuFree") },
    { name: "step", value: said?.step ?? (isOpen ? NOTHING_YET : "–"), label: said?.step ? say("rates", { rate: said.rate ?? "", mfu: said.mfu ?? "" }) : isOpen || !said.free ? say("perStep") : say("noSpeed") },
    { name: "duration", value: said?.duration ?? (isOpen ? NOTHING_YET : "–"), label: state.goal.trim() ? say("toFinish", { tokens: said?.tokens ?? state.goal }) : say("noGoal") },
    said?.cost
      ? { name: "cost", value: said.cost, label: say("costOf", { hours: hours ?? "" }) }
      : { name: "cost", value: hours ?? (isOpen ? NOTHING_YET : "–"), label: say("noPrice") },
  ];
}

const WIDTH = 1000;

/// What a GPU has, what of it is needed, and between which bounds.
function gauge(json: Plan | undefined, said: HeadlineWords | undefined, { say }: App): SVGElement {
  const need = json?.recommended?.memory.device ?? [...(json?.rejected ?? [])].sort((a, b) => a.device.high - b.device.high)[0]?.device;
  const whole = Math.max(json?.capacity ?? 1, need?.high ?? 0) * 1.02;
  const scale = (amount: number) => ((amount / whole) * WIDTH).toFixed(1);
  const words = said ? say("gauge", { need: said.need ?? NOTHING_YET, capacity: said.capacity }) : NOTHING_YET;
  const picture = svg("svg", { class: "gauge", viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: "none", role: "img", "aria-label": words },
    svg("rect", { class: "room", width: scale(json?.capacity ?? whole), height: 20 }));
  if (need && json) picture.append(
    svg("rect", { class: `need ${said?.verdict ?? ""}`, width: scale(need.expected), height: 20 }),
    svg("rect", { class: "band", x: scale(need.low), width: scale(need.high - need.low), y: 13, height: 7 }),
    svg("rect", { class: "limit", x: Number(scale(json.capacity)) - 3, width: 4, height: 20 }));
  return picture;
}

/// What is asked, before there is an answer.
const title = (app: App) => app.state.language === "zh" ? `${model(app.state).name}，${gpus(app.state)}` : `${model(app.state).name} on ${gpus(app.state)}`;

/// `bounds` says what the range rests on, once that is known.
export function headline(found: Answer<Plan, PlanWords> | undefined, bounds: string, buttons: HTMLElement[], app: App): Element[] {
  const { say } = app;
  const said = found?.words.headline;
  const best = found?.json.recommended;
  const verdict = said?.verdict;
  return [
    h("div", { class: "headline-top" },
      h("h2", { class: "headline-title" }, said?.title ?? title(app)),
      h("div", { class: "buttons" }, ...buttons)),
    h("div", { class: "headline-answer" },
      h("p", { class: `headline-verdict ${verdict ?? ""}` }, h("span", { "aria-hidden": "true", class: "sign" }, verdict ? SIGNS[verdict] : ""), said?.verdict_words ?? say("thinking")),
      h("ul", { class: "tiles" }, ...tiles(found?.json, said, app).map(({ name, value, label }) =>
        h("li", { "data-tile": name }, h("strong", {}, value), h("span", {}, label))))),
    gauge(found?.json, said, app),
    h("p", { class: "soft gauge-words" },
      said?.need ? `${say("ofCapacity", { need: said.need, capacity: said.capacity })} ` : "",
      said?.need && bounds ? `${say("range", { bounds })} ` : "", h("a", { href: "accuracy.txt" }, say("accuracy"))),
    h("p", { class: "eyebrow" }, best || !found ? say("recommended") : ""),
    best && found.words.recommended
      ? h("p", { class: "strategy", "data-bytes": best.memory.device.expected, "data-host": best.memory.host.expected, "data-seconds": best.step_seconds?.expected ?? "" }, found.words.recommended.strategy)
      : h("p", { class: "strategy-open" }, found ? (found.words.nothing?.limit[0] ?? "") : NOTHING_YET),
    ...(found?.words.warnings ?? []).map((text) => h("p", { class: "note warning" }, h("strong", {}, `${say("warning")}: `), labelled(text, say))),
  ];
}
