// Learn: what every rank holds at each moment of a step, with the numbers of the model that is asked about.

import type { App, Part } from "../app";
import type { Communication, FilmWords, Memory, MemoryWords, RestWords } from "../answers";
import { number, segments } from "../controls";
import { h } from "../dom";
import { ask, newest, Problem } from "../engine";
import { bytes } from "../format";
import * as questions from "../questions";
import type { State } from "../state";
import { tell } from "../title";
import { concepts } from "./concepts";
import { film, type Film } from "./film";
import { folklore } from "./folklore";
import { player } from "../player";
import { overview, ranks, type Scene } from "./ranks";
import { story } from "./story";

const MOMENTS: [keyof RestWords, "afterInit" | "afterBackward" | "afterStep"][] =
  [["after_init", "afterInit"], ["after_backward", "afterBackward"], ["after_step", "afterStep"]];
const STAGES = [0, 1, 2, 3];
const PACE = 1600;

/// What can be kept on the host at a stage.
const offloads = (stage: number): State["offload"][] => (stage === 3 ? ["none", "optimizer", "all"] : stage > 0 ? ["none", "optimizer"] : ["none"]);

function request(state: State, stage: number, offload: State["offload"]) {
  return {
    machines: { gpus: `${state.ranks}` }, stage, offload, precision: state.precision,
    training: {
      seq_len: state.sequence, method: state.method, lora_rank: state.rank,
      micro_batch: state.micro, grad_checkpointing: state.recompute === "yes",
    },
  };
}

export function learn(app: App): Part {
  const { say, set } = app;
  let moment: keyof RestWords = "after_backward";
  let scene: Scene | undefined;
  const bars = ranks(app);
  const compared = h("div", {});
  const wrong = h("div", {});
  const table = h("section", { class: "panel" });
  const step = h("section", { class: "panel film-panel" });
  let running: Film | undefined;
  /// The stages without offload stay the same while only the stage that is shown changes.
  let known: { key: string; stages: { json: Memory; words: MemoryWords }[] } | undefined;
  let folk = "";

  const choose = (stage: number) => {
    const focused = document.activeElement?.id;
    set({ stage, offload: offloads(stage).includes(app.state.offload) ? app.state.offload : "none" });
    renew();
    if (focused) document.getElementById(focused)?.focus();
  };
  const draw = () => {
    if (!scene) return;
    bars.draw(scene, moment);
    const focused = document.activeElement?.id;
    compared.replaceChildren(overview(scene, moment, app.state.stage, app, choose));
    if (focused?.startsWith("stage-")) document.getElementById(focused)?.focus();
  };

  const run = newest<State>(async (state) => {
    const model = questions.model(state);
    const offload = offloads(state.stage).includes(state.offload) ? state.offload : "none";
    try {
      const key = JSON.stringify([model, request(state, 0, "none"), state.language]);
      if (known?.key !== key) {
        const stages = await Promise.all(STAGES.map((stage) => ask<Memory, MemoryWords>("memory", state.language, { model, request: request(state, stage, "none") })));
        known = { key, stages };
      }
      const plain = known.stages[state.stage];
      const shown = offload === "none" && plain ? plain : await ask<Memory, MemoryWords>("memory", state.language, { model, request: request(state, state.stage, offload) });
      const capacity = app.catalogue.accelerators.find((gpu) => gpu.name === state.card || gpu.slug === state.card || gpu.aliases.includes(state.card))?.capacity ?? null;
      scene = { stages: known.stages.map(({ words }) => words), shown: shown.words, world: shown.json.world_size, capacity };
      wrong.replaceChildren();
      draw();
      const total = (words: MemoryWords, at: keyof RestWords) => bytes(words.rest[at].reduce((all, part) => all + part.bytes, 0));
      lesson.tell({
        ...Object.fromEntries(scene.stages.map((words, stage) => [String(stage), total(words, "after_backward")])),
        shown: total(shown.words, moment), peak: bytes(shown.json.device.expected), n: String(scene.world),
      });
      tell(`${model.name}, ZeRO-${state.stage}, ${state.ranks} ranks: ${say("perRank", { bytes: total(shown.words, "after_backward") })}`);
      running?.stop();
      running = film(await ask<Communication, FilmWords>("film", state.language, { model, request: request(state, state.stage, offload) }), app, capacity);
      step.replaceChildren(...running.elements);
      if (folk !== key) table.replaceChildren(...await folklore(app));
      folk = key;
      element.dataset["state"] = "answered";
      element.dataset["answered"] = JSON.stringify([state.stage, state.ranks, state.micro, state.sequence, state.recompute, offload]);
    } catch (error) {
      wrong.replaceChildren(h("pre", { class: error instanceof Problem ? "problem" : "problem broken", role: "alert" }, String((error as Error).message)));
    }
  });

  const moments = () => h("fieldset", { class: "field segments" }, h("legend", {}, say("phase")),
    h("div", {}, ...MOMENTS.map(([name, word]) => h("label", {},
      h("input", { type: "radio", name: "moment", value: name, checked: name === moment, change: () => { moment = name; draw(); } }), h("span", {}, say(word))))));
  const { button: play, stop } = player(say, PACE, () => {
    const next = MOMENTS[(MOMENTS.findIndex(([name]) => name === moment) + 1) % MOMENTS.length];
    if (next) moment = next[0];
    const input = form.querySelector<HTMLInputElement>(`input[value=${moment}]`);
    if (input) input.checked = true;
    draw();
  });
  const fields = () => {
    const { state } = app;
    return [
      segments(say("stage"), String(state.stage), STAGES.map((name): [string, string] => [String(name), `ZeRO-${name}`]), (stage) => choose(Number(stage))),
      number(say("ranks"), state.ranks, 1, 1024, "", (count) => set({ ranks: count })),
      number(say("micro"), state.micro, 1, 4096, "", (micro) => set({ micro })),
      number(say("sequence"), state.sequence, 1, 1 << 20, "", (sequence) => set({ sequence })),
      segments(say("checkpointing"), state.recompute, [["no", say("off")], ["yes", say("on")]], (recompute) => set({ recompute })),
      segments(say("offload"), state.offload, offloads(state.stage).map((name): [State["offload"], string] => [name, say(name === "none" ? "offloadNone" : name === "optimizer" ? "offloadOptimizer" : "offloadAll")]), (offload) => set({ offload })),
      moments(), play,
    ];
  };
  const form = h("form", { class: "row", submit: (event) => event.preventDefault() });
  /// Fields that another control changed show it.
  const renew = () => {
    const focused = document.activeElement;
    const chosen = focused instanceof HTMLInputElement && form.contains(focused) ? [focused.type, focused.value] as const : undefined;
    form.replaceChildren(...fields());
    if (chosen) [...form.querySelectorAll("input")].find((input) => input.type === chosen[0] && input.value === chosen[1])?.focus();
  };
  const explained = concepts(app);
  const lesson = story(app, (change, at) => { moment = at; set(change); renew(); }, explained.open);
  const element = h("div", { class: "stack" },
    h("section", { class: "panel lesson" }, h("h2", {}, say("learnTitle")),
      h("p", { class: "soft" }, say("learnLead", { model: questions.model(app.state).name })),
      lesson.element, form, wrong, compared, bars.element, h("p", { class: "soft" }, say("sameScale"))),
    step, explained.element, table);
  renew();
  const update = () => run(app.state);
  update();
  return { element, update, leave: () => { stop(); running?.stop(); } };
}
