// One step as areas over its moments: what a rank holds, with a slider that says it of any moment, by pointer, finger and key.

import type { App } from "./app";
import type { Frame } from "./answers";
import { h, id, pointed, svg } from "./dom";
import { bytes } from "./format";
import { player } from "./player";

const WIDTH = 900;
const HEIGHT = 220;
const SHOW = 12_000;

const sum = (frame: Frame) => Object.values(frame.held).reduce((all, amount) => all + amount, 0);

/// A path around what a part adds to those below it.
function area(below: number[], above: number[], most: number): string {
  const x = (place: number) => ((place / above.length) * WIDTH).toFixed(1);
  const y = (amount: number) => (HEIGHT - (amount / most) * (HEIGHT - 6)).toFixed(1);
  const steps = (amounts: number[]) => amounts.map((amount, place) => `${x(place)} ${y(amount)}L${x(place + 1)} ${y(amount)}`);
  const back = below.map((amount, place) => `${x(place + 1)} ${y(amount)}L${x(place)} ${y(amount)}`).reverse();
  return `M${[...steps(above), ...back].join("L")}Z`;
}

/// Round steps of an axis: 1, 2 or 5 times a power of two GiB would be odd, so halves of a power of two.
function ticks(most: number): number[] {
  const step = 2 ** Math.ceil(Math.log2(most / 5));
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

function drawing(frames: Frame[], app: App, capacity: number | null): { picture: SVGElement; cursor: SVGElement; axis: HTMLElement; hasLimit: boolean } {
  const filled = Math.max(...frames.map(sum), 1);
  const hasLimit = capacity !== null && capacity < 1.6 * filled;
  const most = hasLimit ? Math.max(filled, capacity) : filled;
  const y = (amount: number) => HEIGHT - (amount / most) * (HEIGHT - 6);
  const cursor = svg("rect", { class: "cursor", width: 2.5, height: HEIGHT, y: 0 });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "film", preserveAspectRatio: "none", "aria-hidden": "true", "data-most": most });
  for (const tick of ticks(most)) picture.append(svg("rect", { class: "grid", width: WIDTH, height: 1, y: y(tick).toFixed(1) }));
  let below = frames.map(() => 0);
  for (const part of app.named.parts) {
    const amounts = frames.map((frame) => frame.held[part.name] ?? 0);
    if (amounts.every((amount) => amount === 0)) continue;
    const above = below.map((amount, place) => amount + (amounts[place] ?? 0));
    picture.append(svg("path", { d: area(below, above, most), fill: part.colour, "data-part": part.name }));
    below = above;
  }
  if (hasLimit) picture.append(svg("rect", { class: "limit", width: WIDTH, height: 2.5, y: (y(capacity) - 1.25).toFixed(1) }));
  picture.append(cursor);
  const axis = h("div", { class: "axis", "aria-hidden": "true" }, ...ticks(most).map((tick) => {
    const label = h("span", {}, tick === 0 ? "0" : bytes(tick));
    label.style.top = `${(y(tick) / HEIGHT) * 100}%`;
    return label;
  }));
  return { picture, cursor, axis, hasLimit };
}

/// The names of the phases, each as wide as it is long.
function phases(frames: Frame[]): HTMLElement {
  const row = h("div", { class: "phases", "aria-hidden": "true" });
  for (let from = 0; from < frames.length;) {
    const phase = frames[from]?.phase ?? "";
    let to = from;
    while (frames[to]?.phase === phase) to += 1;
    const name = h("span", {}, phase);
    name.style.flexGrow = String(to - from);
    row.append(name);
    from = to;
  }
  return row;
}

export interface Timeline {
  /// The picture, what it says of the moment that is pointed at, and the legend.
  elements: HTMLElement[];
  play: HTMLElement;
  peak: number;
  /// Whether the memory of a GPU is near enough to be drawn as a line.
  hasLimit: boolean;
  /// Ends what runs by itself.
  stop(): void;
}

/// A timeline that begins at a moment: its first, or the one at which most is held.
export function timeline(frames: Frame[], begin: "first" | "fullest", app: App, capacity: number | null): Timeline {
  const { say, named } = app;
  const { picture, cursor, axis, hasLimit } = drawing(frames, app, capacity);
  const peak = Math.max(...frames.map(sum), 0);
  const field = id("field");
  const range = h("input", { id: field, type: "range", min: 0, max: Math.max(frames.length - 1, 0), step: 1, class: "moment" });
  range.value = String(begin === "first" ? 0 : frames.findIndex((frame) => sum(frame) === peak));
  const told = h("p", { class: "told" });
  const shown = new Set(frames.flatMap((frame) => Object.keys(frame.held)));
  const amounts = new Map<string, HTMLElement>();
  const legend = named.parts.filter((part) => shown.has(part.name)).map((part) => {
    const amount = h("span", { class: "amount" });
    amounts.set(part.name, amount);
    return h("li", {}, svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, fill: part.colour })), `${part.words} `, amount);
  });
  const show = () => {
    const place = Number(range.value);
    const frame = frames[place];
    if (!frame) return;
    cursor.setAttribute("x", ((place + 0.5) / frames.length * WIDTH - 1.25).toFixed(1));
    const gathered = frame.held["gathered_weights"] ?? 0;
    const sentence = say(gathered > 0 ? "filmNow" : "filmPlain", { phase: frame.phase, bytes: bytes(sum(frame)), gathered: bytes(gathered) });
    told.textContent = sentence;
    range.setAttribute("aria-valuetext", sentence);
    for (const [name, amount] of amounts) {
      amount.textContent = bytes(frame.held[name] ?? 0);
      amount.dataset["bytes"] = String(frame.held[name] ?? 0);
    }
  };
  const { button: play, stop } = player(say, SHOW / frames.length, () => { range.value = String((Number(range.value) + 1) % frames.length); show(); });
  range.addEventListener("input", () => { stop(); show(); });
  pointed(picture, (share) => {
    range.value = String(Math.min(Math.max(Math.floor(share * frames.length), 0), frames.length - 1));
    stop();
    show();
  });
  show();
  return {
    play, peak, hasLimit, stop,
    elements: [
      h("div", { class: "drawn-film" }, h("div", { class: "film-box" }, axis, picture), phases(frames), h("label", { class: "sr", for: field }, say("filmMoment")), range),
      told, h("ul", { class: "legend amounts" }, ...legend),
    ],
  };
}
