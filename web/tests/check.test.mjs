// Whatever people paste into Check, in a real browser.

import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { browser, cli, open, serve } from "./harness.mjs";

const texts = new URL("../../crates/zeropilot_job/tests/pasted/", import.meta.url);
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let server, chrome;
before(async () => { server = await serve(); chrome = await browser(); });
after(async () => { await chrome?.close(); await server?.close(); });

const using = async (fragment, use, options) => {
  const seen = await open(chrome, server, fragment, options);
  try {
    await seen.page.locator(".findings li").first().waitFor();
    await use(seen.page);
    assert.deepEqual(seen.wrong, []);
  } finally {
    await seen.close();
  }
};

/// Puts a text into the editor as Ctrl+V does.
async function paste(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.evaluate((text) => navigator.clipboard.writeText(text), text);
  await page.keyboard.press("Control+v");
}

const written = async (page) => (await page.locator(".cm-line").allTextContents()).join("\n");

async function drop(page, files) {
  const data = await page.evaluateHandle((files) => {
    const transfer = new DataTransfer();
    for (const [name, text] of files) transfer.items.add(new File([text], name));
    return transfer;
  }, files);
  await page.dispatchEvent(".editor-place", "drop", { dataTransfer: data });
}

test("every pasted text is understood or named, in both languages", async () => {
  const names = (await readdir(texts)).sort();
  assert.ok(names.length >= 30);
  for (const language of ["en", "zh"]) {
    await using(`#check?language=${language}`, async (page) => {
      for (const name of names) {
        const [kind] = basename(name).split(".");
        if (kind === "empty") continue;
        await paste(page, await readFile(new URL(name, texts), "utf8"));
        await page.waitForFunction((kind) => {
          const { dataset } = document.querySelector("[data-kind]") ?? { dataset: {} };
          const lines = [...document.querySelector(".editor-place > div").shadowRoot.querySelectorAll(".cm-line")];
          return dataset.kind === kind && Number(dataset.checked) === lines.map((line) => line.textContent).join("\n").length;
        }, kind, { timeout: 20_000 })
          .catch(async () => assert.fail(`${name}: ${await page.locator(".stack .panel").first().textContent()}`));
        const said = await page.locator(".stack .panel").first().textContent();
        assert.ok(said.length > 10, name);
        if (kind === "config") assert.doesNotMatch(said, /E01|unexpected character|意外的字符/, name);
        if (name.startsWith("launch_script")) assert.match(said, /zeropilot check train\.sh/, name);
        if (name.includes("out_of_memory")) assert.ok(await page.locator(".diagnosis ol li").count() > 0, name);
      }
    });
  }
});

test("what pasting added is removed, told and undone", () => using("#check?language=en", async (page) => {
  const text = await readFile(new URL("config.fence.txt", texts), "utf8");
  await paste(page, text);
  await page.locator(".notice", { hasText: "code fence removed" }).waitFor();
  assert.match(await written(page), /^\{/);
  await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
  await page.waitForFunction(() => document.querySelector("[data-kind]")?.dataset.kind === "config" && document.querySelector(".recognized"));
  assert.match(await written(page), /```json/);
}));

test("a guess waits for a click", () => using("#check?language=en", async (page) => {
  await paste(page, await readFile(new URL("config.cut_off.txt", texts), "utf8"));
  const offer = page.locator(".recognized", { hasText: "2 brackets closed" });
  await offer.waitFor();
  await offer.getByRole("button", { name: "Clean up the text" }).click();
  await page.locator(".notice", { hasText: "2 brackets closed" }).waitFor();
  assert.equal(JSON.parse(await written(page)).zero_optimization.stage, 3);
}));

test("all fixes at once are those of the command line, with a count and the changed lines", () => using("#check?language=en", async (page) => {
  const before = await written(page);
  const button = page.getByRole("button", { name: /^Fix all, including unsafe fixes|^Fix all \(/ }).last();
  const label = await button.textContent();
  await button.click();
  await page.locator(".fixed").waitFor();
  const directory = await mkdtemp(join(tmpdir(), "page-"));
  await writeFile(join(directory, "ds_config.json"), before);
  const engine = await page.getByLabel("DeepSpeed", { exact: true }).inputValue();
  const unsafe = label.includes("unsafe") ? " --unsafe-fixes" : "";
  const [checked] = await cli(`zeropilot check ds_config.json --fix${unsafe} --deepspeed-version ${engine}`, directory, "--output-format json");
  assert.equal(await written(page), (await readFile(join(directory, "ds_config.json"), "utf8")));
  assert.equal(Number(await page.locator(".fixed").getAttribute("data-count")), checked.fixed.length);
  await page.getByText("Show changes").click();
  assert.ok(await page.locator(".patch .added").count() > 0);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  assert.equal(download.suggestedFilename(), "ds_config.json");
}));

test("whether the config fits is the command line's answer", () => using("#check?language=en&card=A100-SXM4-80GB&count=16&sequence=2048", async (page) => {
  await page.getByRole("button", { name: /^Fix all/ }).last().click();
  await page.locator(".fit-verdict").waitFor();
  const directory = await mkdtemp(join(tmpdir(), "page-"));
  await writeFile(join(directory, "ds_config.json"), await written(page));
  const memory = await cli(await page.textContent(".fit .command"), directory);
  assert.equal(Number(await page.getAttribute(".fit-verdict", "data-bytes")), memory.device.expected);
}));

test("files dropped together are checked together", () => using("#check?language=en", async (page) => {
  const yaml = await readFile(new URL("llamafactory.sft.txt", texts), "utf8");
  const config = '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 3}}';
  await drop(page, [["sft.yaml", yaml], ["ds_z3_config.json", config], ["train.sh", "deepspeed train.py\n"]]);
  await page.locator(".notice[data-files='3']").waitFor();
  assert.match(await page.locator(".notice[data-files]").textContent(), /train\.sh: This is a launch script.*zeropilot check train\.sh/);
  await page.locator(".given-arguments", { hasText: "per_device_train_batch_size 1" }).waitFor();
  assert.equal(await page.getByLabel("Framework", { exact: true }).inputValue(), "hf-trainer");
  // The YAML says 1, the config 4: transformers refuses that.
  await page.locator(".findings li.error", { hasText: "train_micro_batch_size_per_gpu" }).first().waitFor();
}));

test("severity is said in words, and the editor says how to leave it", () => using("#check?language=en", async (page) => {
  const said = await page.locator(".findings .severity").allTextContents();
  assert.ok(said.length > 0 && said.every((text) => /error|warning|note/.test(text)), said.join());
  await page.locator(".cm-content").click();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.shadowRoot === null || document.activeElement?.shadowRoot === undefined), true);
  assert.match(await page.textContent("main"), /press Esc, then Tab/);
}));

for (const [language, list, about] of [["en", "Keys and values", /ZeRO/], ["zh", "键和值", /ZeRO/]]) {
  test(`keys and values are completed with the keyboard alone (${language})`, () => using(`#check?language=${language}`, async (page) => {
    const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
    const options = page.locator(".cm-tooltip-autocomplete li");
    const chosen = page.locator(".cm-tooltip-autocomplete li[aria-selected]");
    // Keys that follow the list at once belong to what was typed before.
    const listed = async (label) => { await chosen.filter({ hasText: label }).waitFor(); await page.waitForTimeout(200); };
    const pick = async (label) => { await listed(label); await press("Enter"); };
    await page.locator(".cm-content").click();
    await press("Control+a", "Delete");
    await page.keyboard.type('{"zero_opt');
    await chosen.filter({ hasText: "zero_optimization" }).waitFor();
    assert.equal(await page.getByRole("listbox").getAttribute("aria-label"), list);
    assert.equal(await page.locator(".cm-content").getAttribute("aria-activedescendant"), await chosen.getAttribute("id"));
    await page.locator(".cm-completionInfo", { hasText: about }).waitFor();
    await page.evaluate(await readFile(axe, "utf8"));
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3)}`), []);
    await pick("zero_optimization");
    await page.keyboard.type('"stag');
    await pick("stage");
    assert.equal(await written(page), '{"zero_optimization": {"stage": 0}}');
    // Its values are listed, the default first.
    await listed("0");
    assert.deepEqual(await options.locator(".cm-completionLabel").allTextContents(), ["0", "1", "2", "3"]);
    await press("ArrowDown", "ArrowDown", "ArrowDown");
    await pick("3");
    assert.equal(await written(page), '{"zero_optimization": {"stage": 3}}');
    // A number that is typed is no choice: Enter begins a line. There, a key that is missing its comma gets it.
    await press("Enter");
    await press("Control+Space");
    await chosen.first().waitFor();
    assert.ok(!(await options.locator(".cm-completionLabel").allTextContents()).includes("stage"));
    await page.keyboard.type("overlap_c");
    await pick("overlap_comm");
    assert.match(await written(page), /"stage": 3,\n\s*"overlap_comm": \w+\s*\}\}$/);
    // The list, the chosen value, the editor.
    await chosen.first().waitFor();
    await press("Escape", "Escape", "Escape", "Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.shadowRoot ?? null), null);
  }));
}
