// Learn: what every rank holds at each moment of a step, with the numbers of the model that is asked about.

import type { App, Part } from "../app";
import type { Communication, FilmWords, HeldWords, Memory, MemoryWords, RestWords } from "../answers";
import { number, segments } from "../controls";
import { h, svg } from "../dom";
import { ask, newest, Problem } from "../engine";
import { bytes } from "../format";
import * as questions from "../questions";
import { film, type Film } from "./film";
import { folklore } from "./folklore";
import { player } from "./player";

const MOMENTS: [keyof RestWords, "afterInit" | "afterBackward" | "afterStep"][] =
  [["after_init", "afterInit"], ["after_backward", "afterBackward"], ["after_step", "afterStep"]];
const SHOWN = 8;
const PACE = 1600;

export function learn(app: App): Part {
  const { say, set } = app;
  let moment: keyof RestWords = "after_init";
  let last: { json: Memory; words: MemoryWords } | undefined;
  const ranks = h("div", { class: "ranks" });
  const table = h("section", { class: "panel" });
  const step = h("section", { class: "panel" });
  let running: Film | undefined;
  const draw = () => { if (last) ranks.replaceChildren(...drawn(last, moment, app)); };

  const run = newest<App["state"]>(async (state) => {
    const request = {
      machines: { gpus: `${state.ranks}` }, stage: state.stage, precision: state.precision,
      training: { seq_len: state.sequence, method: state.method, lora_rank: state.rank },
    };
    try {
      last = await ask<Memory, MemoryWords>("memory", state.language, { model: questions.model(state), request });
      draw();
      running?.stop();
      running = film(await ask<Communication, FilmWords>("film", state.language, { model: questions.model(state), request }), app);
      step.replaceChildren(...running.elements);
      table.replaceChildren(...await folklore(app));
      element.dataset["state"] = "answered";
    } catch (error) {
      ranks.replaceChildren(h("pre", { class: error instanceof Problem ? "problem" : "problem broken", role: "alert" }, String((error as Error).message)));
    }
  });
  const moments = h("fieldset", { class: "field segments" }, h("legend", {}, say("phase")),
    h("div", {}, ...MOMENTS.map(([name, word]) => h("label", {},
      h("input", { type: "radio", name: "moment", value: name, checked: name === moment, change: () => { moment = name; draw(); } }), h("span", {}, say(word))))));
  const { button: play, stop } = player(say, PACE, () => {
    const next = MOMENTS[(MOMENTS.findIndex(([name]) => name === moment) + 1) % MOMENTS.length];
    if (next) moment = next[0];
    const input = moments.querySelector<HTMLInputElement>(`input[value=${moment}]`);
    if (input) input.checked = true;
    draw();
  });
  const element = h("div", { class: "stack" },
    h("section", { class: "panel" }, h("h2", {}, say("learnTitle")),
      h("p", { class: "soft" }, say("learnLead", { model: questions.model(app.state).name })),
      h("form", { class: "row", submit: (event) => event.preventDefault() },
        segments(say("stage"), String(app.state.stage), ["0", "1", "2", "3"].map((name): [string, string] => [name, `ZeRO-${name}`]), (stage) => set({ stage: Number(stage) })),
        number(say("ranks"), app.state.ranks, 1, 1024, "", (count) => set({ ranks: count })), moments, play),
      ranks),
    step, table);
  const update = () => run(app.state);
  update();
  return { element, update, leave: () => { stop(); running?.stop(); } };
}

const sum = (held: HeldWords[]) => held.reduce((sum, { bytes }) => sum + bytes, 0);

function drawn({ json, words }: { json: Memory; words: MemoryWords }, moment: keyof RestWords, { say, named }: App): HTMLElement[] {
  const most = Math.max(...MOMENTS.map(([name]) => sum(words.rest[name])), 1);
  const colour = (name: string) => named.parts.find((part) => part.name === name)?.colour ?? "";
  const order = named.parts.map((part) => part.name);
  const now = words.rest[moment].toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  const total = sum(now);
  const count = Math.min(json.world_size, SHOWN);
  const rank = (index: number) => {
    const box = svg("svg", { viewBox: "0 0 100 240", class: "rank", "aria-hidden": "true" }, svg("rect", { class: "frame", width: 100, height: 240, rx: 6 }));
    let top = 238;
    for (const part of now) {
      const height = (part.bytes / most) * 228;
      top -= height;
      box.append(svg("rect", { x: 4, width: 92, y: top.toFixed(2), height: height.toFixed(2), fill: colour(part.name) }, svg("title", {}, `${part.words} ${bytes(part.bytes)}`)));
    }
    return h("figure", {}, box, h("figcaption", {}, `rank ${index}`));
  };
  return [
    h("div", { class: "rank-row" }, ...Array.from({ length: count }, (_, index) => rank(index)),
      json.world_size > count && h("p", { class: "soft" }, `… ${json.world_size}`)),
    h("table", { class: "held", "data-total": total }, h("caption", {}, say("perRank", { bytes: bytes(total) })),
      h("thead", { class: "sr" }, h("tr", {}, h("th", { scope: "col" }, say("part")), h("th", { scope: "col" }, say("gpu")))),
      h("tbody", {}, ...now.map((part) => h("tr", { "data-bytes": part.bytes, "data-part": part.name },
        h("th", { scope: "row" }, svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, fill: colour(part.name) })), part.words),
        h("td", { class: "number" }, bytes(part.bytes)))))),
  ];
}
