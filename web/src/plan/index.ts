// Plan: from a model and GPUs to a config that fits, updated while the question changes.

import type { App, Part } from "../app";
import type { Compared, ComparedWords, Memory, Pictured, Plan, PlanWords } from "../answers";
import { h, picture } from "../dom";
import { ask, newest, Problem, type Answer } from "../engine";
import * as questions from "../questions";
import type { State } from "../state";
import { bars } from "./bars";
import { form } from "./form";
import { choice, config, others, terminal } from "./result";

export function plan(app: App): Part {
  const places = {
    choice: h("section", { class: "panel choice", "aria-live": "polite" }),
    bars: h("section", { class: "panel" }),
    config: h("section", { class: "panel" }),
    others: h("div", { class: "stack" }),
    step: h("section", { class: "panel step" }),
    terminal: h("section", { class: "panel" }),
  };
  const answer = h("div", { class: "answer stack", role: "region", "aria-label": app.say("answer") }, ...Object.values(places));
  let work: questions.Work = { ...questions.NO_PLAN, checkpointing: false };
  let found: Answer<Plan, PlanWords> | undefined;

  const language = () => app.state.language;
  const trouble = (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    places.choice.replaceChildren(h("pre", { class: error instanceof Problem ? "problem" : "problem broken", role: "alert" }, text));
    for (const place of [places.bars, places.config, places.others, places.step]) place.replaceChildren();
    answer.dataset["state"] = "problem";
  };

  const showBars = async (state: State) => {
    const compared = await ask<Compared, ComparedWords>("compare", language(), questions.compare(state, work));
    places.bars.replaceChildren(...bars(compared, work, found?.json.choice?.way, app));
    places.terminal.replaceChildren(...terminal([questions.planCommand(state), questions.compareCommand(state, work)], app));
    answer.dataset["bars"] = String(state.sequence);
    if (performance.getEntriesByName("first answer").length === 0) performance.mark("first answer");
  };

  const showPlan = async (state: State) => {
    found = await ask<Plan, PlanWords>("plan", language(), questions.plan(state));
    places.choice.replaceChildren(...choice(found, app));
    places.config.replaceChildren(...config(found, app));
    places.others.replaceChildren(...others(found, app));
    work = found.json.choice ? questions.work(found.json.choice.way) : questions.NO_PLAN;
  };

  /// Memory and streams of the choice over one step; without a choice, or without a known speed, there is less to see.
  const showStep = async (state: State) => {
    const chosen = found?.json.choice;
    if (!chosen) return places.step.replaceChildren();
    const job = questions.job(state, work, found?.words.choice?.config ?? "");
    const model = questions.model(state);
    const memory = await ask<Memory, Pictured>("memory", language(), { model, request: job });
    const shown = [h("h2", {}, app.say("step")), figure(app.say("stepMemory"), memory.words.picture)];
    if (chosen.step_seconds) {
      const timed = await ask<unknown, Pictured>("simulate", language(), { model, request: { job } });
      shown.push(figure(app.say("stepTime"), timed.words.picture));
    }
    places.step.replaceChildren(...shown);
  };

  const isCurrent = (state: State) => state === app.state;
  const search = newest<State>(async (state) => {
    if (!isCurrent(state)) return;
    try {
      await showPlan(state);
      await showBars(state);
      answer.dataset["state"] = "answered";
      answer.dataset["answered"] = questions.planCommand(state);
      if (isCurrent(state)) await showStep(state);
    } catch (error) {
      if (isCurrent(state)) trouble(error);
    }
  });
  const preview = newest<State>(async (state) => {
    // What is wrong is said by the plan.
    await showBars(state).catch(() => undefined);
  });
  let pause: ReturnType<typeof setTimeout> | undefined;

  const update = (wait = 120) => {
    answer.dataset["state"] = "searching";
    preview(app.state);
    clearTimeout(pause);
    pause = setTimeout(() => search(app.state), wait);
  };
  update(0);
  return { element: h("div", { class: "columns" }, form(app), answer), update: () => update(), leave: () => clearTimeout(pause) };
}

function figure(title: string, text: string): HTMLElement {
  return h("figure", {}, h("figcaption", {}, title), h("div", { class: "paper", tabindex: "0", role: "region", "aria-label": title }, picture(text)));
}
