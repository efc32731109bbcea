// Plan: from a model and GPUs to a config that fits, updated while the question changes.

import type { App, Part } from "../app";
import type { Comparison, ComparisonWords, Memory, MemoryWords, Plan, PlanWords, Simulation, SimulationWords } from "../answers";
import { h, picture } from "../dom";
import { ask, newest, Problem, type Answer } from "../engine";
import * as questions from "../questions";
import type { State } from "../state";
import { bars, type Chosen } from "./bars";
import { form } from "./form";
import { bill, config, others, recommended, terminal } from "./result";

/// A search begins when the question has rested so long, in milliseconds.
const PAUSE = 120;

export function plan(app: App): Part {
  const places = {
    recommended: h("section", { class: "panel recommended", "aria-live": "polite" }),
    bars: h("section", { class: "panel" }),
    config: h("section", { class: "panel" }),
    others: h("div", { class: "stack" }),
    step: h("section", { class: "panel step" }),
    terminal: h("section", { class: "panel" }),
  };
  const answer = h("div", { class: "answer stack", role: "region", "aria-label": app.say("answer") }, ...Object.values(places));
  let work = questions.NO_PLAN_YET;
  let found: Answer<Plan, PlanWords> | undefined;
  let chosen: Chosen;

  const language = () => app.state.language;
  const trouble = (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    places.recommended.replaceChildren(h("pre", { class: error instanceof Problem ? "problem" : "problem broken", role: "alert" }, text));
    for (const place of [places.bars, places.config, places.others, places.step]) place.replaceChildren();
    answer.dataset["state"] = "problem";
  };

  const showBars = async (state: State) => {
    const compared = await ask<Comparison, ComparisonWords>("compare", language(), questions.compare(state, work));
    places.bars.replaceChildren(...bars(compared, work, chosen, app));
    places.terminal.replaceChildren(...terminal(commands(state), app));
    answer.dataset["bars"] = String(state.sequence);
    if (performance.getEntriesByName("first answer").length === 0) performance.mark("first answer");
  };

  const commands = (state: State) => [
    questions.planCommand(state), questions.compareCommand(state, work),
    ...(questions.bill(state) && found?.json.recommended ? [questions.simulateCommand(state, work)] : []),
  ];

  const showPlan = async (state: State) => {
    found = await ask<Plan, PlanWords>("plan", language(), questions.plan(state));
    places.recommended.replaceChildren(...recommended(found, app));
    places.config.replaceChildren(...config(found, app));
    places.others.replaceChildren(...others(found, app));
    work = found.json.recommended ? questions.work(found.json.recommended.strategy) : questions.NO_PLAN;
  };

  const job = (state: State) => questions.job(state, work, found?.words.recommended?.config ?? "");

  const askChosen = async (state: State) => {
    chosen = found?.json.recommended
      ? await ask<Memory, MemoryWords>("memory", language(), { model: questions.model(state), request: job(state) })
      : undefined;
  };

  /// Memory and streams of the recommended strategy over one step; where no speed is known there are no streams.
  const showStep = async (state: State) => {
    if (!chosen) return places.step.replaceChildren();
    const shown = [h("h2", {}, app.say("step")), figure(app.say("stepMemory"), chosen.words.picture)];
    if (found?.json.recommended?.step_seconds) {
      const question = { model: questions.model(state), request: { job: job(state) }, bill: questions.bill(state) };
      const timed = await ask<Simulation, SimulationWords>("simulate", language(), question);
      shown.push(figure(app.say("stepTime"), timed.words.picture));
      if (timed.words.cost_estimate) places.recommended.append(bill(timed.json, timed.words.cost_estimate));
    }
    places.step.replaceChildren(...shown);
    answer.dataset["step"] = questions.planCommand(state);
  };

  const isCurrent = (state: State) => state === app.state;
  const search = newest<State>(async (state) => {
    if (!isCurrent(state)) return;
    try {
      await showPlan(state);
      await askChosen(state);
      await showBars(state);
      answer.dataset["state"] = "answered";
      answer.dataset["answered"] = questions.planCommand(state);
      if (isCurrent(state)) await showStep(state);
    } catch (error) {
      if (isCurrent(state)) trouble(error);
    }
  });
  // What is wrong is said by the plan.
  const preview = newest<State>((state) => showBars(state).catch(() => undefined));
  let pause: ReturnType<typeof setTimeout> | undefined;

  const update = () => {
    answer.dataset["state"] = "searching";
    chosen = undefined;
    preview(app.state);
    clearTimeout(pause);
    pause = setTimeout(() => search(app.state), PAUSE);
  };
  answer.dataset["state"] = "searching";
  // At first both would be compiled at once, and the bars would wait for the search.
  const first = app.state;
  void showBars(first).catch(() => undefined).then(() => search(first));
  return { element: h("div", { class: "columns" }, form(app), answer), update, leave: () => clearTimeout(pause) };
}

function figure(title: string, text: string): HTMLElement {
  return h("figure", {}, h("figcaption", {}, title), h("div", { class: "paper", tabindex: "0", role: "region", "aria-label": title }, picture(text)));
}
