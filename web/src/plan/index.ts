// Plan: from a model and GPUs to a config that fits, updated while the question changes.

import type { App, Part } from "../app";
import type { Comparison, ComparisonWords, Memory, MemoryWords, Plan, PlanWords, Simulation, SimulationWords, StrategyWords } from "../answers";
import { tell } from "../title";
import { h } from "../dom";
import { ask, idle, Interrupted, newest, Problem } from "../engine";
import * as questions from "../questions";
import type { State } from "../state";
import { bars, type Chosen } from "./bars";
import { compare, type Planned, type Side } from "./compare";
import { form } from "./form";
import { grid } from "./grid";
import { headline } from "./headline";
import { blamed, labelled, problem } from "./labels";
import { MOST_PINS, pin, pinned, texts, withPin } from "./pins";
import { config, facts, others, terminal, type Other } from "./result";
import { streams } from "./streams";
import { timeline, type Timeline } from "../timeline";
import { memoryReasons, timeReasons } from "./why";

/// A search begins when the question has rested so long, in milliseconds.
const PAUSE = 20;

export function plan(app: App): Part {
  const { say } = app;
  const places = {
    bars: h("section", { class: "panel bars-panel" }),
    compare: h("section", { class: "panel compare-panel" }),
    facts: h("section", { class: "panel recommended" }),
    why: h("section", { class: "panel why" }),
    config: h("section", { class: "panel" }),
    others: h("div", { class: "stack" }),
    step: h("section", { class: "panel step" }),
  };
  const top = h("section", { class: "panel headline", "aria-live": "polite", "aria-label": say("summary") });
  const command = h("section", { class: "panel" });
  let question = form(app);
  let work = questions.NO_PLAN_YET;
  let found: Planned | undefined;
  let chosen: Chosen;
  /// The recommended strategy, also while another is shown.
  let recommended: Chosen;
  let recommendedWork = work;
  let running: Timeline | undefined;
  let other: Other | undefined;
  /// GPUs that the plan uses, where fewer are cheaper.
  let fewer: Partial<State> = {};
  /// Answers of pinned questions, by the question.
  const sides = new Map<string, Planned | string>();
  const sideKey = (state: State) => JSON.stringify([state.language, questions.plan(state)]);

  /// Changes the question from outside its form, which then shows it.
  const choose = (change: Partial<State>) => {
    app.set(change);
    const fresh = form(app);
    question.replaceWith(fresh);
    question = fresh;
    top.scrollIntoView({ block: "nearest" });
  };
  const gpus = grid(app, choose);
  const answer = h("div", { class: "answer stack", role: "region", "aria-label": say("answer") }, ...Object.values(places), gpus.element, command);

  const language = () => app.state.language;
  const isPinned = () => texts(app.state).includes(pin(app.state));
  const pinButton = () => {
    const isFull = !isPinned() && texts(app.state).length >= MOST_PINS;
    return h("button", {
      type: "button", class: "small", disabled: !found || isPinned() || isFull, title: isFull ? say("pinsFull") : null,
      click: () => {
        if (found) sides.set(sideKey(app.state), found);
        app.set({ pins: withPin(app.state) });
      },
    }, say(isPinned() ? "pinned" : "pin"));
  };
  const showTop = () => {
    top.replaceChildren(...headline(found, other ? "" : (chosen?.words.bounds ?? ""), [pinButton()], app));
    const said = found?.words.headline;
    if (said) tell(`${said.title}: ${said.verdict_words}`, found?.words.recommended?.strategy);
  };
  const showSides = () => {
    const own: Side = { state: app.state, planned: found, isCurrent: true };
    const rest = pinned(app.state).map((state): Side => ({ state, planned: sides.get(sideKey(state)), isCurrent: false }));
    const all = rest.some((side) => sideKey(side.state) === sideKey(app.state)) && rest.length > 1 ? rest : [...rest.filter((side) => sideKey(side.state) !== sideKey(app.state)), own];
    places.compare.replaceChildren(...compare(all, app));
    // A comparison is what the page was opened for; a hint that there may be one is not.
    if (all.length > 1) answer.prepend(places.compare);
    else places.bars.after(places.compare);
  };
  /// Pinned questions that came with a link have no answer yet.
  const answerSides = async () => {
    for (const state of pinned(app.state)) {
      const key = sideKey(state);
      if (sides.has(key)) continue;
      try {
        sides.set(key, await idle<Plan, PlanWords>("plan", language(), questions.plan(state)));
      } catch (error) {
        if (error instanceof Interrupted) return;
        sides.set(key, error instanceof Problem ? labelled(problem(error.message).wrong, say) : String(error));
      }
      showSides();
    }
  };

  const trouble = (error: unknown) => {
    const isProblem = error instanceof Problem;
    const { wrong, help } = isProblem ? problem(error.message) : { wrong: error instanceof Error ? error.message : String(error), help: [] };
    top.replaceChildren(h("div", { class: isProblem ? "problem" : "problem broken", role: "alert" },
      h("p", { class: "problem-wrong" }, labelled(wrong, say)), ...help.map((line) => h("p", {}, labelled(line, say)))));
    for (const key of isProblem ? blamed(error.message) : []) question.querySelector(`[data-key=${key}] :is(input, select)`)?.setAttribute("aria-invalid", "true");
    for (const place of [...Object.values(places), command]) place.replaceChildren();
    found = undefined;
    answer.dataset["state"] = "problem";
  };

  const showBars = async (state: State) => {
    const compared = await ask<Comparison, ComparisonWords>("compare", language(), questions.compare({ ...state, ...fewer }, work));
    const mine = work;
    const choose = (row: StrategyWords) => showOther({ words: row.strategy, work: mine, config: row.config, isRow: true });
    const focused = document.activeElement?.id ?? "";
    const first = other?.isRow ? say("recommendedRow") : (other?.words ?? say("recommendedRow"));
    places.bars.replaceChildren(...bars(compared, work, other?.isRow ? recommended : chosen, first, { shown: other?.isRow ? other.words : "", choose, back }, app));
    if (focused.startsWith("row-")) document.getElementById(focused)?.focus();
    command.replaceChildren(...terminal(commands(state), app));
    answer.dataset["bars"] = String(state.sequence);
    if (performance.getEntriesByName("first answer").length === 0) performance.mark("first answer");
  };

  const commands = (state: State) => [
    questions.planCommand(state), questions.compareCommand({ ...state, ...fewer }, work),
    ...(found?.json.recommended?.step_seconds ? [questions.simulateCommand({ ...state, ...fewer }, work)] : []),
  ];

  const showPlan = (planned: Planned) => {
    found = planned;
    other = undefined;
    const { world_size: world, by_gpu_count: offers } = found.json;
    const used = offers?.find((offer) => offer.nodes * offer.gpus_per_node === world);
    fewer = used ? { nodes: used.nodes, count: used.gpus_per_node } : {};
    work = { ...(found.json.recommended ? questions.work(found.json.recommended.strategy) : questions.NO_PLAN), generator: questions.generator(found.json) };
    recommendedWork = work;
    for (const field of question.querySelectorAll("[aria-invalid=true]:not([type=number])")) field.removeAttribute("aria-invalid");
    document.title = `${found.words.headline.title}: ${found.words.headline.verdict_words} · zeropilot`;
    places.facts.replaceChildren(...facts(found, choose, app));
    places.config.replaceChildren(...config(found, undefined, app));
    const { json } = found;
    places.others.replaceChildren(...others(found, ({ strategy, config }, words) =>
      showOther({ words, work: { ...questions.work(strategy), generator: questions.generator(json) }, config: `${JSON.stringify(config, null, 2)}\n`, isRow: false }), app));
    chosen = undefined;
    showTop();
    showSides();
    if (performance.getEntriesByName("recommended").length === 0) performance.mark("recommended");
  };

  const back = () => { if (other) { other = undefined; void again(); } };
  /// Config, memory and time of another strategy: one that fits, or a row of the table.
  const showOther = (next: Omit<Other, "back">) => {
    other = { ...next, back };
    void again();
  };
  const again = async () => {
    const state = app.state;
    if (!found) return;
    work = other?.work ?? recommendedWork;
    places.config.replaceChildren(...config(found, other, app));
    places.config.scrollIntoView({ block: "nearest" });
    // Another row may be chosen meanwhile.
    const mine = other;
    try {
      await askChosen(state);
      if (mine === other) await showBars(state);
      if (mine === other) await showStep(state);
      if (mine === other) answer.dataset["shown"] = other?.words ?? "";
    } catch (error) {
      if (isCurrent(state)) trouble(error);
    }
  };

  const shownConfig = () => other?.config ?? found?.words.recommended?.config ?? "";
  const job = (state: State) => questions.job({ ...state, ...fewer }, work, shownConfig());

  const askChosen = async (state: State) => {
    chosen = found?.json.recommended || other
      ? await ask<Memory, MemoryWords>("memory", language(), { model: questions.model(state), request: job(state) })
      : null;
    if (chosen) places.why.replaceChildren(memoryReasons(chosen, app));
    else places.why.replaceChildren();
    if (!other) recommended = chosen;
    if (!other) showTop();
  };

  /// A row of the table may be one that cannot be timed; a strategy of the plan can.
  const untimed = (error: unknown) => {
    if (other?.isRow && error instanceof Problem) return undefined;
    throw error;
  };
  /// Whether a step can be timed: the speed of the GPUs is known.
  const hasSpeed = () => {
    const { recommended, alternatives, fallbacks } = found?.json ?? { alternatives: [], fallbacks: [] };
    const fitting = [recommended, ...alternatives, ...fallbacks].filter((one) => one);
    return fitting.length > 0 ? fitting.some((one) => one?.step_seconds) : app.catalogue.accelerators.some((gpu) => [gpu.slug, gpu.name, ...gpu.aliases].includes(app.state.card.trim()));
  };

  /// Memory and streams of the strategy over one step; where no speed is known there are no streams.
  const showStep = async (state: State) => {
    answer.dataset["step"] = "";
    running?.stop();
    if (!chosen) return places.step.replaceChildren();
    running = timeline(chosen.words.frames, "fullest", app, found?.json.capacity ?? null);
    const shown = [h("div", { class: "head" }, h("h2", {}, say("step")), running.play), figure([say("stepMemory"), running.hasLimit && h("span", { class: "limit-label" }, ` ┃ ${found?.words.headline.capacity ? say("limit", { bytes: found.words.headline.capacity }) : ""}`)], running.elements)];
    if (hasSpeed()) {
      const asked = { model: questions.model(state), request: { job: job(state) }, bill: questions.bill(state) };
      const timed = await ask<Simulation, SimulationWords>("simulate", language(), asked).catch(untimed);
      if (timed) {
        shown.push(figure([say("stepTime")], streams(timed.words.streams, app)));
        places.why.replaceChildren(memoryReasons(chosen, app), timeReasons(timed, app));
      }
    }
    places.step.replaceChildren(...shown);
    answer.dataset["step"] = questions.planCommand(state);
  };

  const isCurrent = (state: State) => sideKey(state) === sideKey(app.state);
  const search = newest<State>(async (state) => {
    if (!isCurrent(state)) return;
    try {
      const planned = await ask<Plan, PlanWords>("plan", language(), questions.plan(state));
      if (!isCurrent(state)) return;
      showPlan(planned);
      await askChosen(state);
      await showBars(state);
      answer.dataset["state"] = "answered";
      answer.dataset["answered"] = questions.planCommand(state);
      if (isCurrent(state)) await showStep(state);
      if (isCurrent(state)) {
        gpus.start();
        await answerSides();
      }
    } catch (error) {
      if (isCurrent(state)) trouble(error);
    }
  });
  // What is wrong is said by the plan.
  const preview = newest<State>((state) => showBars(state).catch(() => undefined));
  let pause: ReturnType<typeof setTimeout> | undefined;
  let asked = sideKey(app.state);

  const update = () => {
    // Pins change what stands beside the answer, not the answer.
    if (sideKey(app.state) === asked) {
      showTop();
      showSides();
      return;
    }
    asked = sideKey(app.state);
    answer.dataset["state"] = "searching";
    gpus.stop();
    chosen = undefined;
    other = undefined;
    recommended = undefined;
    fewer = {};
    preview(app.state);
    clearTimeout(pause);
    pause = setTimeout(() => search(app.state), PAUSE);
  };
  answer.dataset["state"] = "searching";
  showTop();
  showSides();
  // At first both would be compiled at once, and the bars would wait for the search.
  const first = app.state;
  void showBars(first).catch(() => undefined).then(() => search(first));
  const leave = () => {
    running?.stop();
    clearTimeout(pause);
    gpus.stop();
  };
  return { element: h("div", { class: "plan" }, top, h("div", { class: "columns" }, question, answer)), update, leave };
}

function figure(title: (string | HTMLElement | false)[], elements: HTMLElement[]): HTMLElement {
  return h("figure", {}, h("figcaption", {}, ...title), ...elements);
}
