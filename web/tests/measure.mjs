// Size and speed beside their limits: 2.05 MB compressed, the first answer 300 ms after the page has loaded, and 50 ms at the
// 95th percentile from a move of the slider to new bars. The size is held to its limit; these times are with ZEROPILOT_SPEED=1. Two
// more goals are printed and limit nothing: the recommended strategy 600 ms after the page has loaded, and the whole answer
// 200 ms after a move of the slider. Where more wants to run than there are processors, times are allowed as much more;
// ZEROPILOT_PAGE_SLACK says how much instead.

import { readdir, stat } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { answered, browser, open, serve } from "./harness.mjs";

const crowd = loadavg()[0] / availableParallelism();
const slack = Number(process.env.ZEROPILOT_PAGE_SLACK ?? Math.max(1, crowd));
const dist = new URL("../dist/", import.meta.url);
let size = 0;
for (const name of await readdir(dist)) if (/\.(gz|png)$/.test(name)) size += (await stat(new URL(name, dist))).size;

const server = await serve();
const chrome = await browser();
const firsts = [];
const choices = [];
for (let turn = 0; turn < 5; turn += 1) {
  const { page, close } = await open(chrome, server, "#plan?language=en");
  await page.waitForSelector(".bars tbody tr");
  const since = (name) => page.evaluate((name) => {
    const loaded = performance.getEntriesByType("navigation")[0].loadEventEnd;
    return performance.getEntriesByName(name)[0].startTime - loaded;
  }, name);
  firsts.push(await since("first answer"));
  await answered(page);
  choices.push(await since("recommended"));
  await close();
}
const { page, close } = await open(chrome, server, "#plan?language=en");
await answered(page);
await page.waitForTimeout(3000);
const moves = await page.evaluate(async () => {
  const slider = document.querySelector("input[type=range]");
  const took = [];
  for (let turn = 0; turn < 100; turn += 1) {
    const bars = document.querySelector(".answer");
    const begin = performance.now();
    slider.value = String(turn % 9);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const wanted = slider.getAttribute("aria-valuetext").split(" ")[0];
    await new Promise((done) => {
      const look = () => (bars.dataset.bars === wanted ? done() : setTimeout(look, 1));
      look();
    });
    took.push(performance.now() - begin);
  }
  return took.sort((a, b) => a - b);
});
/// From a move to the answer to all of it: verdict, strategy, config, reasons and bars.
const whole = await page.evaluate(async () => {
  const slider = document.querySelector("input[type=range]");
  const answer = document.querySelector(".answer");
  const took = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const begin = performance.now();
    slider.value = String(turn % 9);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const wanted = `--seq-len ${slider.getAttribute("aria-valuetext").split(" ")[0]}`;
    await new Promise((done) => {
      const look = () => (answer.dataset.state === "answered" && `${answer.dataset.answered} `.includes(`${wanted} `) ? done() : setTimeout(look, 1));
      look();
    });
    took.push(performance.now() - begin);
  }
  return took.sort((a, b) => a - b);
});
await close();
await chrome.close();
await server.close();

firsts.sort((a, b) => a - b);
choices.sort((a, b) => a - b);
const measured = {
  slack, bytes: size, first_ms: firsts[2], recommended_ms: choices[2], slider_p50_ms: moves[50], slider_p95_ms: moves[95],
  answer_p50_ms: whole[10], answer_p95_ms: whole[18],
};
console.log(JSON.stringify(measured));
for (const [name, goal] of [["recommended_ms", 600], ["answer_p95_ms", 200]]) console.log(`${name}: ${Math.round(measured[name])}, the goal on a quiet machine is ${goal}`);
const limits = [["bytes", 2_050_000], ["first_ms", 300 * slack], ["slider_p95_ms", 50 * slack]];
const over = limits.filter(([name, most]) => measured[name] > most);
for (const [name, most] of over) console.error(`${name} is ${measured[name]}, more than ${most}`);
const isHeld = ([name]) => name === "bytes" || process.env.ZEROPILOT_SPEED === "1";
process.exit(over.some(isHeld) ? 1 : 0);
