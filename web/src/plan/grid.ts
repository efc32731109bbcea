// GPU model by number of GPUs: what fits where, how long it takes and what it costs; searched while nothing else is.

import type { App } from "../app";
import type { Plan, PlanWords, Verdict } from "../answers";
import { h } from "../dom";
import { idle, Interrupted, interrupt, Problem } from "../engine";
import * as questions from "../questions";
import type { State } from "../state";
import type { Word } from "../words";
import { exports, type Table } from "./table";

/// Models that people compare; the one that is asked about stands above them.
const CARDS = ["RTX-4090", "L40S", "A100-SXM4-80GB", "H100-SXM5-80GB", "H200-SXM-141GB", "B200-SXM-180GB"];
const COUNTS = [1, 2, 4, 8, 16, 32];
const NODE = 8;
const SHORT: Record<Verdict, Word> = { fits: "shortFits", low_headroom: "shortLow", may_not_fit: "shortMay", does_not_fit: "shortNo" };

interface Place { state: State; key: string; card: string; count: number }
/// What a cell says: the verdict, how long, how much; the problem where there is no answer.
interface Found { verdict?: Verdict; lines: string[]; problem?: string }

/// Answers by question: what was searched once is not searched again.
const known = new Map<string, Found>();

function places(state: State): Place[][] {
  const cards = [...new Set([state.card.trim(), ...CARDS])];
  return cards.map((card) => COUNTS.map((count) => {
    const own: State = { ...state, card, count: Math.min(count, NODE), nodes: Math.max(1, count / NODE), pins: "" };
    return { state: own, card, count, key: JSON.stringify([state.language, questions.plan(own)]) };
  }));
}

function found({ verdict, duration, cost, gpu_hours }: PlanWords["headline"], { say }: App): Found {
  const money = cost ?? (gpu_hours ? say("gpuHours", { hours: gpu_hours }) : null);
  return { verdict, lines: [say(SHORT[verdict]), ...[duration, money].filter((line): line is string => line !== null)] };
}

export interface Grid {
  element: HTMLElement;
  /// Another question: what is searched is given up.
  stop(): void;
  /// The question has its answer: the rest may be searched.
  start(): void;
}

export function grid(app: App, choose: (change: Partial<State>) => void): Grid {
  const { say } = app;
  const body = h("div", {});
  const progress = h("p", { class: "soft", role: "status" });
  const element = h("section", { class: "panel grid-panel" }, body);
  let turn = 0;
  let isSeen = false;
  let isWanted = false;
  const cells = new Map<string, HTMLElement>();

  const fill = (place: Place) => {
    const cell = cells.get(place.key);
    if (!cell) return;
    const said = known.get(place.key);
    cell.className = `cell ${said?.verdict ?? (said ? "unknown" : "")}`;
    const where = `${place.card}, ${place.count}`;
    const { card, count, nodes } = place.state;
    cell.replaceChildren(said
      ? h("button", { type: "button", title: said.problem ?? null, "aria-label": `${where}: ${said.lines.join(", ")}`, click: () => choose({ card, count, nodes }) }, ...said.lines.map((line) => h("span", { class: "line" }, line)))
      : "…");
  };

  const table = (): Table => {
    const { state } = app;
    return {
      name: "zeropilot-gpus", title: `${questions.model(state).name}: ${say("grid")}`, note: [state.price.trim() && say("gridPrice", { price: state.price }), say("madeBy", { version: app.catalogue.version })].filter(Boolean).join(" "),
      head: [say("gpuModel"), ...COUNTS.map((count) => (count === 1 ? say("oneGpu") : say("gpuCount", { count })))],
      rows: places(state).map((row) => ({
        head: row[0]?.card ?? "",
        cells: row.map((place) => ({ lines: known.get(place.key)?.lines ?? ["…"], tone: known.get(place.key)?.verdict })),
      })),
    };
  };

  const draw = () => {
    const { state } = app;
    cells.clear();
    const { head, rows } = table();
    const all = places(state);
    body.replaceChildren(
      h("div", { class: "head" }, h("h2", {}, say("grid")), exports(table, say)),
      h("p", { class: "soft" }, say("gridLead", { model: questions.model(state).name, tokens: state.sequence.toLocaleString("en"), method: state.method === "full" ? say("full") : state.method })),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": say("grid") },
        h("table", { class: "grid" }, h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
          h("tbody", {}, ...rows.map((row, index) => h("tr", {}, h("th", { scope: "row" }, row.head), ...(all[index] ?? []).map((place) => {
            const isCurrent = place.card === state.card.trim() && place.count === state.count * state.nodes;
            const cell = h("td", { "data-card": place.card, "data-count": place.count, "aria-current": isCurrent ? "true" : null });
            cells.set(place.key, cell);
            return cell;
          })))))),
      state.price.trim() ? h("p", { class: "soft aside" }, say("gridPrice", { price: state.price })) : "", progress);
    all.flat().forEach(fill);
  };

  const search = async () => {
    const mine = ++turn;
    const all = places(app.state).flat();
    const count = () => { progress.textContent = say("gridProgress", { done: all.filter((place) => known.has(place.key)).length, all: all.length }); };
    count();
    for (const place of all) {
      if (known.has(place.key)) continue;
      try {
        const { words } = await idle<Plan, PlanWords>("plan", app.state.language, questions.plan(place.state));
        known.set(place.key, found(words.headline, app));
      } catch (error) {
        if (error instanceof Interrupted || mine !== turn) return;
        known.set(place.key, { lines: [say("noAnswer")], problem: error instanceof Problem ? error.message : String(error) });
      }
      if (mine !== turn) return;
      fill(place);
      count();
    }
  };

  const begin = () => { if (isSeen && isWanted) { isWanted = false; void search(); } };
  const watcher = new IntersectionObserver((entries) => {
    isSeen = entries.some((entry) => entry.isIntersecting);
    begin();
  });
  watcher.observe(element);
  draw();
  return {
    element,
    stop: () => { turn += 1; isWanted = false; interrupt(); },
    start: () => { draw(); isWanted = true; begin(); },
  };
}
