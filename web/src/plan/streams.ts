// The streams of a step: a lane for every one, with a slider that says what happens at any moment, by pointer, finger and key.

import type { App } from "../app";
import type { LaneWords, StreamsWords } from "../answers";
import { h, id, pointed, svg } from "../dom";
import { seconds } from "../format";

const WIDTH = 1000;
const HEIGHT = 24;
const MOMENTS = 500;
/// What is shorter is drawn all the same.
const LEAST = 0.4;

function drawn(lane: LaneWords, end: number): { picture: SVGElement; cursor: SVGElement } {
  const x = (moment: number) => (moment / end) * WIDTH;
  const cursor = svg("rect", { class: "cursor", width: 2, height: HEIGHT });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "lane", "aria-hidden": "true" },
    ...lane.blocks.map((block) => svg("rect", { x: x(block.begin).toFixed(2), width: Math.max(x(block.end - block.begin), LEAST).toFixed(2), height: HEIGHT, fill: block.colour })), cursor);
  return { picture, cursor };
}

export function streams({ end, axis, lanes, colours }: StreamsWords, { say }: App): HTMLElement[] {
  const field = id("field");
  const range = h("input", { id: field, type: "range", min: 0, max: MOMENTS - 1, step: 1, class: "moment", value: 0 });
  const told = h("p", { class: "told" });
  const all = lanes.map((lane) => ({ lane, ...drawn(lane, end) }));
  const show = () => {
    const moment = (Number(range.value) + 0.5) / MOMENTS;
    const now = all.flatMap(({ lane, cursor }) => {
      cursor.setAttribute("x", (moment * WIDTH - 1).toFixed(1));
      const block = lane.blocks.find((block) => block.begin <= moment * end && moment * end < block.end);
      return block ? [say("laneNow", { lane: lane.words, what: block.words, time: block.time })] : [];
    });
    const sentence = say("streamsNow", { time: seconds(moment * end), what: now.join(say("listed")) || say("nothingRuns") });
    told.textContent = sentence;
    range.setAttribute("aria-valuetext", sentence);
  };
  range.addEventListener("input", show);
  for (const { picture } of all) pointed(picture, (share) => {
    range.value = String(Math.min(Math.max(Math.floor(share * MOMENTS), 0), MOMENTS - 1));
    show();
  });
  show();
  const marks = axis.map((time, index) => {
    const mark = h("span", {}, time);
    mark.style.left = `${(index / (axis.length - 1)) * 100}%`;
    return mark;
  });
  return [
    h("div", { class: "streams" }, ...all.flatMap(({ lane, picture }) => [h("span", { class: "lane-name" }, lane.words), picture]),
      h("div", { class: "lane-axis", "aria-hidden": "true" }, ...marks),
      h("div", { class: "lane-range" }, h("label", { class: "sr", for: field }, say("streamsMoment")), range)),
    told,
    h("ul", { class: "legend" }, ...colours.map(({ words, colour }) =>
      h("li", {}, svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, fill: colour })), words))),
  ];
}
