// The Plan section: the headline, what it warns of, comparing and saving, and how it stays in place.

import assert from "node:assert/strict";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answered, browser, cli, open, serve } from "./harness.mjs";

let server, chrome;
before(async () => { server = await serve(); chrome = await browser(); });
after(async () => { await chrome?.close(); await server?.close(); });

const using = async (fragment, use, options) => {
  const seen = await open(chrome, server, fragment, options);
  try {
    await use(seen.page);
    assert.deepEqual(seen.wrong, []);
  } finally {
    await seen.close();
  }
};
const tile = (page, name) => page.textContent(`[data-tile=${name}] strong`);
const settled = (page) => page.waitForSelector(".answer[data-step]:not([data-step=''])");

test("the headline says whether it fits, what is free, the time of a step, and days and money for the tokens", () => using("#plan?language=en&goal=10B&price=%242", async (page) => {
  await answered(page);
  const plan = await cli(await page.locator(".command").first().textContent());
  assert.equal(await page.textContent(".headline-title"), "Qwen/Qwen3-8B on 8xA100-SXM4-80GB");
  assert.match(await page.textContent(".headline-verdict"), /fits$/);
  const free = (plan.capacity - plan.recommended.memory.device.expected) / 2 ** 30;
  assert.equal(await tile(page, "free"), `${free.toFixed(free < 9.995 ? 2 : 1)} GiB`);
  assert.equal(await tile(page, "step"), `${plan.recommended.step_seconds.expected.toFixed(plan.recommended.step_seconds.expected < 9.995 ? 2 : 1)} s`);
  const days = plan.cost_estimate.gpu_hours / 8 / 24;
  assert.equal(await tile(page, "duration"), `${days.toFixed(days < 9.995 ? 2 : 1)} days`);
  assert.equal(await tile(page, "cost"), `$${Math.round(plan.cost_estimate.gpu_hours * 2).toLocaleString("en")}`);
  assert.match(await page.title(), /^Qwen\/Qwen3-8B on 8xA100-SXM4-80GB: fits/);
  assert.match(await page.textContent(".gauge-words"), /published runs/);
  const link = await page.getAttribute(".gauge-words a", "href");
  assert.match(await (await page.request.get(server.address + link)).text(), /^# Accuracy/);
}));

test("a plan that nobody would run is warned of, in both languages and by the command line", () => using("#plan?language=en&model=meta-llama/Meta-Llama-3.1-70B&card=RTX-4090&count=4", async (page) => {
  await answered(page);
  const warnings = await page.locator(".warning").allTextContents();
  assert.ok(warnings.some((text) => /TiB of host memory/.test(text)), String(warnings));
  const { provenance } = await cli(await page.locator(".command").first().textContent());
  assert.ok(provenance.notes.some((text) => /TiB of host memory/.test(text)));
  await page.getByRole("button", { name: "中文" }).click();
  await page.locator(".warning", { hasText: "主机内存" }).first().waitFor();
}));

test("bf16 on a GPU without it is warned of", () => using("#plan?language=en&card=V100-SXM2-32GB", async (page) => {
  await answered(page);
  assert.match((await page.locator(".warning").allTextContents()).join(), /V100 SXM2 32GB does not support bf16/);
}));

test("where nothing fits no row says that it does, and a remedy changes the question", () => using("#plan?language=en&model=meta-llama/Meta-Llama-3.1-70B&card=RTX-4090&count=4&hostRam=256GiB", async (page) => {
  await answered(page);
  assert.match(await page.textContent(".headline-verdict"), /not fit/);
  const verdicts = await page.locator(".bars tbody tr:not(.chosen) .verdict").allTextContents();
  assert.ok(verdicts.length > 0 && verdicts.every((text) => /not fit/.test(text)), String(verdicts));
  const before = await page.locator(".command").first().textContent();
  await page.locator(".remedies button").first().click();
  await page.waitForFunction((old) => document.querySelector(".answer").dataset.answered !== old && document.querySelector(".answer").dataset.state === "answered", before);
  assert.match(await page.textContent(".headline-verdict"), /fits/);
}));

test("a problem marks its field, speaks of fields and shows no command of another question", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const field = page.getByLabel("Host memory");
  await field.fill("lots");
  await field.press("Tab");
  await page.locator(".problem").waitFor();
  assert.match(await page.textContent(".problem"), /“Host memory” cannot be parsed[\s\S]*512GiB/);
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  assert.equal(await page.locator(".command").count(), 0);
}));

test("numbers out of range are marked", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const count = page.getByLabel("GPUs per node");
  await count.fill("2000");
  assert.equal(await count.getAttribute("aria-invalid"), "true");
  assert.match(await page.textContent(".wrong:not(:empty)"), /1 – 1,024/);
  await count.fill("4");
  assert.equal(await count.getAttribute("aria-invalid"), "false");
}));

test("Enter takes the first suggestion, memory alone is a GPU, and field and answer agree", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const model = page.getByRole("combobox", { name: "Model" });
  await model.fill("mixtral");
  await model.press("Enter");
  assert.match(await model.inputValue(), /Mixtral/);
  await model.fill("gpt-oss");
  await model.press("Tab");
  assert.match(await model.inputValue(), /^openai\/gpt-oss/, "Tab takes it, too");
  await model.fill("Qwen/Qwen3-8B");
  await model.press("Tab");
  await page.waitForFunction(() => document.querySelector(".answer").dataset.answered?.includes("Qwen/Qwen3-8B"));
  const gpu = page.getByRole("combobox", { name: "GPU" });
  await gpu.fill("80GB");
  await gpu.press("Enter");
  assert.equal(await gpu.inputValue(), "80GB");
  await model.fill("");
  await model.click();
  const listed = await page.getByRole("listbox", { name: "Model" }).getByRole("option").allTextContents();
  assert.match(listed[0], /Qwen3/);
  assert.ok(listed.every((text) => !/e\+/.test(text)), "no size in powers of ten");
  assert.match(listed.at(-1), /more/);
}));

test("two machines are compared side by side and saved as Markdown, CSV, SVG and PNG", () => using("#plan?language=en&price=%242", async (page) => {
  await answered(page);
  await page.getByRole("button", { name: "Pin to compare" }).click();
  const gpu = page.getByRole("combobox", { name: "GPU" });
  await gpu.fill("H100-SXM5-80GB");
  await gpu.press("Enter");
  await page.waitForFunction(() => document.querySelector(".answer").dataset.answered?.includes("H100") && document.querySelector(".answer").dataset.state === "answered");
  const cells = (name) => page.locator(".sides tbody tr", { has: page.getByRole("rowheader", { name, exact: true }) }).locator("td").allTextContents();
  const commands = ["8xA100-SXM4-80GB", "8xH100-SXM5-80GB"].map((gpus) => `zeropilot plan --model Qwen/Qwen3-8B --gpus ${gpus} --seq-len 4096 --tokens 1B --cost '$2'`);
  const [a100, h100] = await Promise.all(commands.map((line) => cli(line)));
  const words = (seconds) => (seconds < 1 ? `${(seconds * 1000).toFixed(0)} ms` : `${seconds.toFixed(2)} s`);
  const seconds = [a100, h100].map((plan) => words(plan.recommended.step_seconds.expected));
  assert.deepEqual(await cells("Time per step"), seconds);
  assert.match(page.url(), /pins=/);
  const saved = async (kind) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".compare-panel").getByRole("button", { name: `Save as ${kind}` }).click()]);
    return { name: download.suggestedFilename(), content: await readFile(await download.path()) };
  };
  const text = (await saved("Markdown")).content.toString();
  assert.match(text, /\| +\| Qwen\/Qwen3-8B, 8xA100-SXM4-80GB \| Qwen\/Qwen3-8B, 8xH100-SXM5-80GB \|/);
  assert.ok(text.includes(`| ${seconds.join(" | ")} |`), text);
  const sheet = (await saved("CSV")).content.toString().split("\r\n").map((line) => line.split(","));
  const hours = sheet.find((row) => row[0] === "GPU hours");
  assert.deepEqual(hours.slice(1).map(Number), [a100, h100].map((plan) => plan.cost_estimate.gpu_hours));
  const drawing = (await saved("SVG")).content.toString();
  assert.match(drawing, /^<svg xmlns[\s\S]*8xH100-SXM5-80GB[\s\S]*<\/svg>$/);
  const picture = (await saved("PNG")).content;
  assert.equal(picture.subarray(1, 4).toString(), "PNG");
  assert.ok(picture.length > 5000);
  const link = page.url();
  await using(link.slice(link.indexOf("#")), async (page) => {
    await answered(page);
    await page.waitForFunction(() => document.querySelectorAll(".sides thead th").length === 2 && !document.querySelector(".sides").textContent.includes("…"));
    assert.deepEqual(await page.locator(".sides tbody tr:nth-child(8) td").allTextContents(), seconds);
  });
}));

test("the grid is searched while nothing else is, holds the command line's verdicts, and gives way at once", () => using("#plan?language=en&model=Qwen/Qwen3-0.6B&sequence=1024", async (page) => {
  await settled(page);
  await page.locator(".grid-panel").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelectorAll(".cell button").length >= 4, undefined, { timeout: 120_000 });
  const plan = await cli("zeropilot plan --model Qwen/Qwen3-0.6B --gpus 2xA100-SXM4-80GB --seq-len 1024 --tokens 1B");
  const hours = plan.cost_estimate.gpu_hours;
  const cell = page.locator(".cell[data-card='A100-SXM4-80GB'][data-count='2']");
  assert.ok((await cell.textContent()).includes(`${hours < 100 ? hours.toFixed(1) : Math.round(hours).toLocaleString("en")} GPU hours`), await cell.textContent());
  await cell.getByRole("button").click();
  await page.waitForFunction(() => document.querySelector(".answer").dataset.answered?.includes("2xA100-SXM4-80GB"));
  assert.equal(await page.getByLabel("GPUs per node").inputValue(), "2");
}));

test("another strategy that fits shows its config and its time", () => using("#plan?language=en", async (page) => {
  await settled(page);
  const plan = await cli(await page.locator(".command").first().textContent());
  await page.locator(".others .act button").first().click();
  await page.waitForFunction(() => document.querySelector(".answer").dataset.shown);
  assert.deepEqual(JSON.parse(await page.textContent(".config")), plan.alternatives[0].config);
  await page.getByRole("button", { name: "Back to the recommended strategy" }).click();
  await page.waitForFunction(() => !document.querySelector(".answer").dataset.shown);
  assert.deepEqual(JSON.parse(await page.textContent(".config")), plan.recommended.config);
}));

test("a row of the table shows its config, timeline and time by key, as the command line has them", () => using("#plan?language=en", async (page) => {
  await settled(page);
  const compared = await cli(await page.locator(".command").nth(1).textContent());
  const index = compared.strategies.findIndex((row) => row.stage === 2 && row.offload_optimizer);
  const name = page.locator(`#row-${index}`);
  const needed = await page.locator(".bars tbody tr:not(.chosen)").nth(index).getAttribute("data-bytes");
  const text = await name.textContent();
  await name.focus();
  assert.match(await page.textContent(".row-told"), /weights [\d.]+ GiB, .*activations [\d.]+ GiB/);
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => document.querySelector(".answer").dataset.shown === text, text);
  assert.equal(await page.evaluate(() => document.activeElement?.id), `row-${index}`, "the focus stays");
  assert.equal(await name.getAttribute("aria-pressed"), "true");
  const config = JSON.parse(await page.textContent(".config"));
  assert.deepEqual([config.zero_optimization.stage, config.zero_optimization.offload_optimizer.device], [2, "cpu"]);
  const directory = await mkdtemp(join(tmpdir(), "page-"));
  await writeFile(join(directory, "ds_config.json"), await page.textContent(".config"));
  const command = (await page.locator(".command").allTextContents()).find((line) => line.includes(" simulate "));
  const [timed, memory] = [await cli(command, directory), await cli(command.replace(" simulate ", " memory ").replace(/ --tokens \S+/, ""), directory)];
  assert.equal(Number(await page.getAttribute(".step-takes", "data-seconds")), timed.step.expected);
  assert.equal(Number(needed), memory.device.expected);
  const held = await page.locator(".amounts .amount").evaluateAll((all) => all.reduce((sum, one) => sum + Number(one.dataset.bytes), 0));
  const tensors = Object.entries(memory.device.at_peak).filter(([part]) => part !== "runtime").reduce((sum, [, amount]) => sum + amount, 0);
  assert.equal(held, tensors, "the timeline begins at the fullest moment");
  await page.locator(".bars tbody tr.chosen td.drawn").click();
  await page.waitForFunction(() => document.querySelector(".answer").dataset.shown === "");
  assert.equal(await page.locator(".launch").count(), 1);
}));

test("the timeline and the streams say every moment by key and by finger, and their colours differ", () => using("#plan?language=en&sequence=2048", async (page) => {
  await settled(page);
  await page.waitForSelector(".lane");
  const told = (place) => page.locator(".step .told").nth(place).textContent();
  for (const [place, name] of [[0, "Point in the step"], [1, "Time in the step"]]) {
    const slider = page.getByRole("slider", { name });
    await slider.press("Home");
    const first = await told(place);
    for (let turn = 0; turn < 8; turn += 1) await slider.press("PageUp");
    assert.notEqual(await told(place), first);
    assert.equal(await slider.getAttribute("aria-valuetext"), await told(place));
  }
  const box = await page.locator(".lane").first().boundingBox();
  await page.touchscreen.tap(box.x + box.width * 0.1, box.y + box.height / 2);
  assert.match(await told(1), /compute: forward/);
  const colours = await page.evaluate(() => {
    const of = (selector) => [...document.querySelectorAll(selector)].map((rect) => rect.getAttribute("fill")).filter(Boolean);
    return { memory: of(".step .film path"), lanes: [...new Set(of(".step .lane rect"))], legend: of(".step figure:nth-of-type(2) .swatch rect") };
  });
  assert.ok(colours.lanes.length >= 2);
  assert.deepEqual(colours.lanes.filter((colour) => colours.memory.includes(colour)), []);
  assert.deepEqual(colours.lanes.filter((colour) => !colours.legend.includes(colour)), [], "every colour is in the legend");
}, { viewport: { width: 390, height: 844 }, hasTouch: true }));

test("a teacher and rollouts are asked for where a task has them", () => using("#plan?language=en&model=Qwen/Qwen3-0.6B&task=distill", async (page) => {
  await answered(page);
  assert.match(await page.textContent(".problem"), /teacher/);
  const teacher = page.getByRole("combobox", { name: "Teacher model" });
  assert.equal(await teacher.getAttribute("aria-invalid"), "true");
  await teacher.fill("qwen3-8b");
  await teacher.press("Enter");
  await page.waitForFunction(() => document.querySelector(".answer").dataset.answered?.includes("--teacher"));
  await page.getByLabel("Task").selectOption("grpo");
  await page.getByLabel("Completions from").selectOption("server");
  await page.waitForFunction(() => document.querySelector(".answer").dataset.answered?.includes("--task grpo --rollout server"));
  assert.equal(await teacher.count(), 0);
}));

test("a bar beyond the scale is torn and says so, one within it is not", () => using("#plan?language=en&model=meta-llama/Meta-Llama-3.1-70B&card=RTX-4090&count=4", async (page) => {
  await answered(page);
  const compared = await cli(await page.locator(".command").nth(1).textContent());
  const rows = await page.locator(".bars tbody tr:not(.chosen)").evaluateAll((all) => all.map((row) => ({
    bytes: Number(row.dataset.bytes), torn: row.querySelector(".torn") !== null, said: row.querySelector(".sr").textContent,
  })));
  const whole = compared.capacity * 1.5 * 1.02;
  assert.ok(rows.some(({ bytes }) => bytes > whole));
  for (const { bytes, torn, said } of rows) assert.deepEqual([torn, /beyond the scale/.test(said)], [bytes > whole, bytes > whole], `${bytes}`);
}));

test("what fills a bar is there as text", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const { strategies } = await cli(await page.locator(".command").nth(1).textContent());
  const rows = await page.locator(".bars tbody tr:not(.chosen)").evaluateAll((all) => all.map((row) => ({
    hidden: row.querySelector(".bar").getAttribute("aria-hidden"), said: row.querySelector(".drawn .sr").textContent.split(", "),
  })));
  for (const [index, { hidden, said }] of rows.entries()) {
    assert.equal(hidden, "true");
    const amounts = said.map((part) => /^(.+) ([\d.]+) (B|[KMGT]iB)$/.exec(part)).filter(Boolean);
    const unit = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
    const sum = amounts.reduce((all, [, , amount, name]) => all + Number(amount) * unit[name], 0);
    assert.ok(Math.abs(sum / strategies[index].device.expected - 1) < 0.01, `${said} is ${strategies[index].device.expected}`);
  }
}));

for (const [width, height] of [[1024, 768], [1200, 800], [1280, 800], [1440, 900]]) {
  for (const language of ["en", "zh"]) {
    test(`nothing stands out of its panel at ${width} pixels in ${language}`, async () => {
      const seen = await open(chrome, server, `#plan?language=${language}&model=meta-llama/Meta-Llama-3.1-70B&card=H100-SXM5-80GB&pins=card%3DH200-SXM-141GB%26model%3Dmeta-llama%252FMeta-Llama-3.1-70B`, { viewport: { width, height }, locale: language === "zh" ? "zh-CN" : "en-US" });
      await settled(seen.page);
      await seen.page.waitForSelector(".lane");
      const cut = await seen.page.evaluate(() => [...document.querySelectorAll(".panel")].flatMap((panel) => {
        const { right } = panel.getBoundingClientRect();
        return [...panel.querySelectorAll("*")].filter((element) => element.checkVisibility() && !element.closest(".scroll, .code, .sr, [role=listbox], svg"))
          .filter((element) => element.getBoundingClientRect().right > right + 0.5).map((element) => `${panel.className}: ${element.tagName} ${element.textContent.slice(0, 30)}`);
      }));
      assert.deepEqual(cut, []);
      await seen.close();
    });
  }
}

test("with More open the whole question can be reached on a low screen", () => using("#plan?language=en&task=grpo", async (page) => {
  await answered(page);
  const { top, bottom, tall } = await page.evaluate(() => {
    const { top, bottom } = document.querySelector(".question").getBoundingClientRect();
    return { top, bottom, tall: document.querySelector(".question").scrollHeight };
  });
  assert.ok(tall > 700 && bottom - top <= 700, `${tall} pixels in ${bottom - top}`);
  await page.evaluate(() => scrollTo(0, 1500));
  const last = page.getByLabel("Gradient checkpointing", { exact: true });
  await last.focus();
  const box = await last.boundingBox();
  assert.ok(box.y >= 0 && box.y + box.height <= 700, JSON.stringify(box));
}, { viewport: { width: 1366, height: 700 } }));

test("hints are as short as their fields", async () => {
  for (const locale of ["en-US", "zh-CN"]) {
    await using("#plan?card=&model=&task=gkd&heldStage=", async (page) => {
      await page.waitForSelector(".question input");
      const cut = await page.evaluate(() => [...document.querySelectorAll(".question input[placeholder]")].filter((input) => input.checkVisibility()).map((input) => {
        const style = getComputedStyle(input);
        const pen = document.createElement("canvas").getContext("2d");
        pen.font = style.font;
        const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - (input.type === "number" ? 16 : 0);
        return [input.placeholder, pen.measureText(input.placeholder).width, room];
      }).filter(([, wide, room]) => wide > room));
      assert.deepEqual(cut, []);
    }, { locale });
  }
});

test("why: the fullest moment, what lowers it most, and where the time goes", () => using("#plan?language=en", async (page) => {
  await settled(page);
  assert.match(await page.textContent(".why"), /GPU memory peaks/);
  const shares = await page.locator(".shares tr td:last-child").allTextContents();
  assert.ok(shares.length > 1);
  assert.ok(await page.locator(".savings li").count() > 0);
}));

for (const [width, height] of [[1440, 1000], [390, 844]]) {
  test(`nothing jumps while the first answer comes at ${width} pixels`, () => using("#plan?language=en", async (page) => {
    await settled(page);
    const shift = await page.evaluate(() => new Promise((done) => {
      new PerformanceObserver((list) => done(list.getEntries().filter((entry) => !entry.hadRecentInput).reduce((sum, entry) => sum + entry.value, 0)))
        .observe({ type: "layout-shift", buffered: true });
      setTimeout(() => done(0), 1000);
    }));
    assert.ok(shift < 0.05, `layout shift ${shift}`);
  }, { viewport: { width, height } }));
}

test("on a phone two answers stand side by side", () => using("#plan?language=zh&pins=card%3DH100-SXM5-80GB", async (page) => {
  await answered(page);
  await page.waitForFunction(() => document.querySelectorAll(".sides thead th").length === 2 && !document.querySelector(".sides").textContent.includes("…"));
  const cut = await page.$eval(".compare-panel .scroll", (box) => box.scrollWidth - box.clientWidth);
  assert.equal(cut, 0);
}, { viewport: { width: 390, height: 844 } }));

test("on a phone the answer stands before the question", () => using("#plan?language=zh", async (page) => {
  await answered(page);
  const top = (selector) => page.$eval(selector, (element) => element.getBoundingClientRect().top);
  assert.ok(await top(".headline-verdict") < 400);
  assert.ok(await top(".headline") < await top(".question"));
  assert.match(await page.locator(".limit-label.phone").innerText(), /79\.1 GiB/, "the limit line has its number");
  assert.ok(await page.locator(".limit-label.phone").isVisible());
  const label = await page.$eval(".bars tbody tr:not(.chosen) .host", (cell) => getComputedStyle(cell, "::before").content);
  assert.match(label, /主机内存/, "host memory is named where the head of the table is hidden");
}, { viewport: { width: 390, height: 844 } }));
