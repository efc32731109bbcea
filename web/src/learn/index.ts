// Learn: what every rank holds at each moment of a step, with the numbers of the model that is asked about.

import type { App, Part } from "../app";
import type { Memory, Rest } from "../answers";
import { number, segments } from "../controls";
import { h, svg } from "../dom";
import { ask, newest, Problem } from "../engine";
import { bytes } from "../format";
import * as questions from "../questions";
import { folklore } from "./folklore";

type Moment = "after_init" | "after_backward" | "after_step";
const MOMENTS: [Moment, "afterInit" | "afterBackward" | "afterStep"][] =
  [["after_init", "afterInit"], ["after_backward", "afterBackward"], ["after_step", "afterStep"]];
const COLOURS = ["#0072b2", "#d55e00", "#7a5195", "#cc79a7", "#009e73", "#e69f00", "#56b4e9", "#999999", "#88ccaa"];
const SHOWN = 8;
const PACE = 1600;

export function learn(app: App): Part {
  const { say, set } = app;
  let moment: Moment = "after_init";
  let timer: ReturnType<typeof setInterval> | undefined;
  let last: Memory | undefined;
  const ranks = h("div", { class: "ranks" });
  const table = h("section", { class: "panel" });
  const draw = () => { if (last) ranks.replaceChildren(...drawn(last, moment, app)); };

  const run = newest<App["state"]>(async (state) => {
    const request = {
      machines: { gpus: `${state.ranks}` }, stage: state.stage, precision: state.precision,
      training: { seq_len: state.sequence, method: state.method, lora_rank: state.rank },
    };
    try {
      const answer = await ask<Memory, unknown>("memory", state.language, { model: questions.model(state), request });
      last = answer.json;
      draw();
      table.replaceChildren(...await folklore(app));
      element.dataset["state"] = "answered";
    } catch (error) {
      ranks.replaceChildren(h("pre", { class: error instanceof Problem ? "problem" : "problem broken", role: "alert" }, String((error as Error).message)));
    }
  });
  const moments = h("fieldset", { class: "field segments" }, h("legend", {}, say("phase")),
    h("div", {}, ...MOMENTS.map(([name, word]) => h("label", {},
      h("input", { type: "radio", name: "moment", value: name, checked: name === moment, change: () => { moment = name; draw(); } }), h("span", {}, say(word))))));
  const play = h("button", { type: "button", "aria-pressed": "false" }, say("play"));
  const stop = () => { clearInterval(timer); timer = undefined; play.textContent = say("play"); play.setAttribute("aria-pressed", "false"); };
  play.addEventListener("click", () => {
    if (timer) return stop();
    play.textContent = say("pause");
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      const next = MOMENTS[(MOMENTS.findIndex(([name]) => name === moment) + 1) % MOMENTS.length];
      if (next) moment = next[0];
      const input = moments.querySelector<HTMLInputElement>(`input[value=${moment}]`);
      if (input) input.checked = true;
      draw();
    }, PACE);
  });
  const element = h("div", { class: "stack" },
    h("section", { class: "panel" }, h("h2", {}, say("learnTitle")),
      h("p", { class: "soft" }, say("learnLead", { model: questions.model(app.state).name })),
      h("form", { class: "row", submit: (event) => event.preventDefault() },
        segments(say("stage"), String(app.state.stage), ["0", "1", "2", "3"].map((name): [string, string] => [name, `ZeRO-${name}`]), (stage) => set({ stage: Number(stage) })),
        number(say("ranks"), app.state.ranks, 1, 1024, "", (count) => set({ ranks: count })), moments, play),
      ranks),
    table);
  const update = () => run(app.state);
  update();
  return { element, update, leave: stop };
}

/// What a rank holds, by category.
function held(rest: Rest): [string, number][] {
  return Object.entries(rest.device).filter(([, amount]) => amount > 0);
}

function drawn(memory: Memory, moment: Moment, { say }: App): HTMLElement[] {
  const all = MOMENTS.map(([name]) => memory.tensors[name]);
  const categories = [...new Set(all.flatMap((rest) => held(rest).map(([name]) => name)))];
  const most = Math.max(...all.map((rest) => held(rest).reduce((sum, [, amount]) => sum + amount, 0)), 1);
  const colour = (name: string) => COLOURS[categories.indexOf(name) % COLOURS.length] ?? "#999999";
  const now = held(memory.tensors[moment]);
  const total = now.reduce((sum, [, amount]) => sum + amount, 0);
  const count = Math.min(memory.world_size, SHOWN);
  const rank = (index: number) => {
    const box = svg("svg", { viewBox: "0 0 100 200", class: "rank", "aria-hidden": "true" }, svg("rect", { class: "frame", width: 100, height: 200, rx: 6 }));
    let top = 198;
    for (const [name, amount] of now) {
      const height = (amount / most) * 192;
      top -= height;
      box.append(svg("rect", { x: 4, width: 92, y: top.toFixed(2), height: height.toFixed(2), fill: colour(name) }, svg("title", {}, `${name} ${bytes(amount)}`)));
    }
    return h("figure", {}, box, h("figcaption", {}, `rank ${index}`));
  };
  return [
    h("div", { class: "rank-row" }, ...Array.from({ length: count }, (_, index) => rank(index)),
      memory.world_size > count && h("p", { class: "soft" }, `… ${memory.world_size}`)),
    h("table", { class: "held", "data-total": total }, h("caption", {}, say("perRank", { bytes: bytes(total) })),
      h("thead", { class: "sr" }, h("tr", {}, h("th", { scope: "col" }, say("part")), h("th", { scope: "col" }, say("gpu")))),
      h("tbody", {}, ...now.map(([name, amount]) => h("tr", { "data-bytes": amount },
        h("th", { scope: "row" }, svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, fill: colour(name) })), name.replaceAll("_", " ")),
        h("td", { class: "number" }, bytes(amount)))))),
  ];
}
