// Every number on the page is the command line's: a hundred and thirty questions, both run for real, the command as the page itself shows it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answered, browser, cli, open, serve } from "./harness.mjs";
import { fragment, QUESTIONS } from "./questions.mjs";

let server, chrome, seen;
before(async () => {
  server = await serve();
  chrome = await browser();
  seen = await open(chrome, server, fragment(QUESTIONS[0]));
});
after(async () => {
  await chrome?.close();
  await server?.close();
});

/// As the command line writes bytes; written anew here, so that the page's own is not its judge.
function bytes(amount) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (amount >= 1023.5 && unit < 4) { amount /= 1024; unit += 1; }
  const digits = unit === 0 ? 0 : amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0;
  return `${amount.toFixed(digits)} ${units[unit]}`;
}

const shown = (page) => page.evaluate(() => {
  const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
  const way = document.querySelector(".strategy");
  return {
    commands: all(".command", (element) => element.textContent),
    problem: document.querySelector(".problem")?.textContent ?? null,
    bars: all(".bars tbody tr:not(.chosen)", (row) => ({
      bytes: Number(row.dataset.bytes), host: Number(row.dataset.host), verdict: row.dataset.verdict, need: row.querySelector(".number").textContent,
      hostText: row.querySelector(".host").textContent,
      parts: [...row.querySelectorAll("rect > title")].map((title) => title.textContent),
    })),
    choice: way && { bytes: Number(way.dataset.bytes), host: Number(way.dataset.host), seconds: way.dataset.seconds },
    row: Number(document.querySelector(".bars tr.chosen")?.dataset.bytes),
    config: document.querySelector(".config")?.textContent ?? null,
    launch: document.querySelector(".launch pre")?.textContent ?? null,
    others: all(".others", (element) => [...element.querySelectorAll("tbody tr")].map((row) => Number(row.dataset.bytes))),
  };
});

assert.equal(QUESTIONS.length, 130);
assert.equal(new Set(QUESTIONS.map((question) => JSON.stringify(question))).size, 130, "no question twice");

for (const question of QUESTIONS) {
  test(`the page and the command line agree on ${JSON.stringify(question)}`, async () => {
    const { page, wrong } = seen;
    await page.goto(`${server.address}?${Math.random()}${fragment(question)}`);
    await answered(page);
    const said = await shown(page);
    assert.equal(said.problem, null);
    const [plan, compared] = await Promise.all(said.commands.slice(0, 2).map((line) => cli(line)));

    assert.equal(said.bars.length, compared.strategies.length);
    for (const [index, way] of compared.strategies.entries()) {
      const row = said.bars[index];
      assert.deepEqual([row.bytes, row.host, row.verdict], [way.device.expected, way.host.expected, way.device.verdict]);
      assert.ok(row.need.startsWith(bytes(way.device.expected)), `${row.need} is ${way.device.expected}`);
      assert.equal(row.hostText, bytes(way.host.expected));
      for (const part of Object.values(way.device.at_peak)) assert.ok(row.parts.some((text) => text.endsWith(` ${bytes(part)}`)), `${part} in ${row.parts}`);
    }
    const device = (fitting) => fitting.memory.device.expected;
    if (plan.recommended) {
      assert.deepEqual(said.choice, { bytes: device(plan.recommended), host: plan.recommended.memory.host.expected, seconds: String(plan.recommended.step_seconds?.expected ?? "") });
      assert.equal(said.row, device(plan.recommended), "the bar of the choice is the plan's number");
      assert.deepEqual(JSON.parse(said.config), plan.recommended.config);
      assert.equal(said.launch, Object.values(plan.recommended.launch)[0]);
    } else assert.equal(said.choice, null);
    const others = [plan.alternatives.map(device), plan.fallbacks.map(device), plan.rejected.map((one) => one.over_by)];
    assert.deepEqual(said.others, others.filter((rows) => rows.length > 0));
    assert.deepEqual(wrong, []);
  });
}
