// One step as a film: what a rank holds from moment to moment, with what is gathered and let go in between.

import type { App } from "../app";
import type { Communication, FilmWords, Frame } from "../answers";
import { h, id, svg } from "../dom";
import type { Answer } from "../engine";
import { bytes } from "../format";
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

function drawing(frames: Frame[], app: App, capacity: number | null): { picture: SVGElement; cursor: SVGElement; axis: HTMLElement } {
  const filled = Math.max(...frames.map(sum), 1);
  const most = capacity !== null && capacity < 1.6 * filled ? Math.max(filled, capacity) : filled;
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
  if (capacity !== null && capacity <= most) picture.append(svg("rect", { class: "limit", width: WIDTH, height: 2.5, y: (y(capacity) - 1.25).toFixed(1) }));
  picture.append(cursor);
  const axis = h("div", { class: "axis", "aria-hidden": "true" }, ...ticks(most).map((tick) => {
    const label = h("span", {}, tick === 0 ? "0" : bytes(tick));
    label.style.top = `${(y(tick) / HEIGHT) * 100}%`;
    return label;
  }));
  return { picture, cursor, axis };
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

export interface Film {
  elements: HTMLElement[];
  /// Ends what runs by itself.
  stop(): void;
}

export function film({ words }: Answer<Communication, FilmWords>, app: App, capacity: number | null): Film {
  const { say, named } = app;
  const { frames } = words;
  const { picture, cursor, axis } = drawing(frames, app, capacity);
  const field = id("field");
  const range = h("input", { id: field, type: "range", min: 0, max: Math.max(frames.length - 1, 0), step: 1, class: "moment", value: 0 });
  range.value = "0";
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
  const point = (event: PointerEvent) => {
    const { left, width } = picture.getBoundingClientRect();
    const place = Math.floor(((event.clientX - left) / width) * frames.length);
    range.value = String(Math.min(Math.max(place, 0), frames.length - 1));
    stop();
    show();
  };
  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerdown", point);
  show();
  return {
    stop,
    elements: [
      h("div", { class: "head" }, h("h2", {}, say("film")), play),
      h("p", { class: "soft" }, `${say("filmLead")} ${say("filmPeak", { bytes: bytes(Math.max(...frames.map(sum))) })}.`),
      h("div", { class: "drawn-film" }, h("div", { class: "film-box" }, axis, picture), phases(frames), h("label", { class: "sr", for: field }, say("filmMoment")), range),
      told, h("ul", { class: "legend amounts" }, ...legend),
      h("pre", { class: "code wrap sent" }, words.sent.trimEnd()),
    ],
  };
}
