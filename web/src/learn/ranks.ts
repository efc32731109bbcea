// Ranks side by side: bars on one scale for all stages, and whose slice each rank keeps.

import type { App } from "../app";
import type { HeldWords, MemoryWords, RestWords } from "../answers";
import { h, svg } from "../dom";
import { bytes } from "../format";

/// Pixels of the tallest bar and of the frame around it.
const TALL = 240;
const FRAME = 252;
const SHOWN = 8;
/// A limit this many times above every bar would press them flat.
const FAR = 3;

const sum = (held: HeldWords[]) => held.reduce((all, part) => all + part.bytes, 0);

/// What is drawn: the answers for stages 0 to 3 without offload, for the scale, and the one that is shown.
export interface Scene {
  stages: MemoryWords[];
  shown: MemoryWords;
  world: number;
  capacity: number | null;
}

export interface Ranks { element: HTMLElement; draw(scene: Scene, moment: keyof RestWords): void }

/// The most that any stage holds between the phases; what a full bar stands for.
export function scale({ stages, shown, capacity }: Scene): number {
  const rests = [...stages, shown].flatMap(({ rest }) => [rest.after_init, rest.after_backward, rest.after_step]);
  const most = Math.max(...rests.map(sum), 1);
  return capacity !== null && capacity > most && capacity < FAR * most ? capacity : most;
}

function swatch(colour: string): SVGElement {
  return svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, fill: colour }));
}

interface Column { figure: HTMLElement; bars: Map<string, SVGRectElement>; limit: SVGRectElement; slices: HTMLElement }

export function ranks({ say, named }: App): Ranks {
  const row = h("div", { class: "rank-row" });
  const rest = h("p", { class: "soft" });
  const limit = h("p", { class: "soft limit-note" });
  const table = h("table", { class: "held" });
  let columns: Column[] = [];

  /// Columns stay the same elements from draw to draw, so that their bars move.
  const column = (index: number): Column => {
    const bars = new Map(named.parts.map((part) => [part.name, svg("rect", { class: "part", x: 4, width: 92, y: FRAME - 2, height: 0, fill: part.colour, "data-part": part.name })]));
    const limit = svg("rect", { class: "limit", x: 0, width: 100, height: 2.5, y: -10 });
    const box = svg("svg", { viewBox: `0 0 100 ${FRAME}`, width: 100, height: FRAME, class: "rank", "aria-hidden": "true" },
      svg("rect", { class: "frame", width: 100, height: FRAME, rx: 6 }), ...bars.values(), limit);
    const slices = h("div", { class: "slices", "aria-hidden": "true" });
    return { figure: h("figure", {}, box, h("figcaption", {}, `rank ${index}`), slices), bars, limit, slices };
  };

  const draw = (scene: Scene, moment: keyof RestWords) => {
    const { shown, stages, world, capacity } = scene;
    const most = scale(scene);
    const order = named.parts.map((part) => part.name);
    const now = shown.rest[moment].toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
    const whole = new Map((stages[0]?.rest[moment] ?? []).map((part) => [part.name, part.bytes]));
    const count = Math.min(world, SHOWN);
    if (columns.length !== count) {
      columns = Array.from({ length: count }, (_, index) => columns[index] ?? column(index));
      row.replaceChildren(...columns.map(({ figure }) => figure), rest);
    }
    rest.textContent = world > count ? `… ${world}` : "";
    const colour = (name: string) => named.parts.find((part) => part.name === name)?.colour ?? "";
    const cut = now.filter((part) => whole.has(part.name)).map((part) => ({ ...part, isCut: part.bytes < 0.75 * (whole.get(part.name) ?? 0) }));
    for (const [index, { bars, limit, slices }] of columns.entries()) {
      let top = FRAME - 2;
      for (const name of order) {
        const bar = bars.get(name);
        const part = now.find((held) => held.name === name);
        const height = ((part?.bytes ?? 0) / most) * TALL;
        top -= height;
        bar?.setAttribute("y", top.toFixed(2));
        bar?.setAttribute("height", height.toFixed(2));
        bar?.replaceChildren(...(part ? [svg("title", {}, `${part.words} ${bytes(part.bytes)}`)] : []));
      }
      limit.setAttribute("y", capacity !== null && capacity <= most ? (FRAME - 2 - (capacity / most) * TALL - 1.25).toFixed(2) : "-10");
      slices.replaceChildren(...cut.map((part) => h("div", { "data-part": part.name }, ...Array.from({ length: count }, (_, place) => {
        const isKept = !part.isCut || place === index;
        const cell = h("span", { class: isKept ? "kept" : "away" });
        if (isKept) cell.style.backgroundColor = colour(part.name);
        return cell;
      }))));
    }
    limit.textContent = capacity === null ? "" : say(capacity <= most ? "limitLine" : "limitAbove", { bytes: bytes(capacity) });
    const total = sum(now);
    table.dataset["total"] = String(total);
    table.replaceChildren(h("caption", {}, say("perRank", { bytes: bytes(total) })),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, say("part")), h("th", { scope: "col", class: "number" }, say("gpu")), h("th", { scope: "col" }, say("kept")))),
      h("tbody", {}, ...now.map((part) => {
        const known = cut.find(({ name }) => name === part.name);
        return h("tr", { "data-bytes": part.bytes, "data-part": part.name },
          h("th", { scope: "row" }, swatch(colour(part.name)), part.words), h("td", { class: "number" }, bytes(part.bytes)),
          h("td", {}, known ? say(known.isCut ? "slice" : "copy1", { count: world }) : ""));
      })));
  };
  const element = h("div", { class: "ranks" }, h("div", {}, row, limit), h("div", { class: "scroll" }, table));
  return { element, draw };
}

/// All stages as bars of one rank, on the same scale; each is a button for its stage.
export function overview(scene: Scene, moment: keyof RestWords, stage: number, app: App, choose: (stage: number) => void): HTMLElement {
  const most = scale(scene);
  const { say, named } = app;
  const colour = (name: string) => named.parts.find((part) => part.name === name)?.colour ?? "";
  return h("div", { class: "stages", role: "group", "aria-label": say("allStages") }, ...scene.stages.map((words, index) => {
    const held = words.rest[moment];
    const total = sum(held);
    const bar = svg("svg", { viewBox: "0 0 240 22", class: "stage-bar", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "frame", width: 240, height: 22 }));
    let from = 0;
    for (const { name } of named.parts) {
      const part = held.find((one) => one.name === name);
      if (!part) continue;
      const width = (part.bytes / most) * 240;
      bar.append(svg("rect", { x: from.toFixed(2), width: width.toFixed(2), height: 22, fill: colour(name) }));
      from += width;
    }
    if (scene.capacity !== null && scene.capacity <= most) bar.append(svg("rect", { class: "limit", x: ((scene.capacity / most) * 240 - 0.75).toFixed(2), width: 1.5, height: 22 }));
    return h("button", { type: "button", class: "stage-row", id: `stage-${index}`, "data-bytes": total, "aria-pressed": index === stage ? "true" : "false", click: () => choose(index) },
      h("span", {}, `ZeRO-${index}`), bar, h("span", { class: "number" }, bytes(total)));
  }));
}
