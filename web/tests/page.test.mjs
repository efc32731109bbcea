// What people do with the page, in a real browser.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { answered, browser, cli, dist, open, serve } from "./harness.mjs";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const LLAMA = { model_type: "llama", hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 22, num_attention_heads: 32, num_key_value_heads: 4, vocab_size: 32000, tie_word_embeddings: false };
let server, chrome;
before(async () => { server = await serve(); chrome = await browser(); });
after(async () => { await chrome?.close(); await server?.close(); });

/// Opens the page, uses it, and holds it to having met no error and asked nobody else.
const using = async (fragment, use, options) => {
  const seen = await open(chrome, server, fragment, options);
  try {
    await use(seen.page);
    assert.deepEqual(seen.wrong, []);
  } finally {
    await seen.close();
  }
};

test("a question that has no answer says so in the words of the command line", () => using("#plan?language=en&card=H1000", async (page) => {
  await answered(page);
  assert.match(await page.textContent(".problem"), /H1000[\s\S]*H100/);
}));

test("a model is found by typing and chosen with the keyboard", () => using("#plan?language=en", async (page) => {
  await answered(page);
  await page.getByRole("combobox", { name: "Model" }).fill("qwen3 0.6");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".answer")?.dataset.answered?.includes("Qwen/Qwen3-0.6B"));
  assert.match(page.url(), /model=Qwen%2FQwen3-0\.6B/);
}));

test("the slider changes the answer and the address", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const before = await page.getAttribute(".bars tbody tr:nth-child(5)", "data-bytes");
  await page.getByRole("slider", { name: "Sequence length" }).press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".answer")?.dataset.answered?.includes("--seq-len 6144"));
  assert.notEqual(await page.getAttribute(".bars tbody tr:nth-child(5)", "data-bytes"), before);
  assert.match(page.url(), /sequence=6144/);
}));

test("a link that is shared opens the same question elsewhere", async () => {
  let link;
  await using("#plan?language=en", async (page) => {
    await answered(page);
    await page.getByLabel("QLoRA", { exact: true }).check();
    await page.waitForFunction(() => document.querySelector(".answer")?.dataset.answered?.includes("qlora"));
    await page.getByRole("button", { name: "Copy link" }).click();
    link = await page.evaluate(() => navigator.clipboard.readText());
  });
  await using(link.slice(link.indexOf("#")), async (page) => {
    await answered(page);
    assert.match(await page.textContent(".command"), /--method qlora/);
    assert.equal(await page.getAttribute("html", "lang"), "zh-CN", "the reader's language stays");
  }, { locale: "zh-CN" });
});

test("everything is said in the other language, numbers stay", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const numbers = () => page.$$eval(".bars tbody tr", (rows) => rows.map((row) => row.dataset.bytes));
  const before = await numbers();
  await page.getByRole("button", { name: "中文" }).click();
  await page.locator(".eyebrow", { hasText: "推荐方案" }).waitFor();
  await answered(page);
  assert.deepEqual(await numbers(), before);
  assert.equal(await page.getAttribute("html", "lang"), "zh-CN");
  const words = await page.$$eval("h2, th, label, legend, button, .facts li", (all) => all.map((element) => element.textContent.trim()).filter(Boolean));
  const foreign = words.filter((text) => /[A-Za-z]{3,} [a-z]{3,} [a-z]{2,}/.test(text));
  assert.deepEqual(foreign, []);
}));

test("a dropped config.json is planned as the command line plans it", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const text = JSON.stringify(LLAMA);
  const data = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "config.json", { type: "application/json" }));
    return transfer;
  }, text);
  await page.dispatchEvent(".model", "drop", { dataTransfer: data });
  await page.waitForFunction(() => document.querySelector(".answer")?.dataset.answered?.includes("--model config.json"));
  const directory = await mkdtemp(join(tmpdir(), "page-"));
  await writeFile(join(directory, "config.json"), text);
  const plan = await cli(await page.textContent(".command"), directory);
  assert.equal(Number(await page.getAttribute(".strategy", "data-bytes")), plan.recommended.memory.device.expected);
}));

test("a config is downloaded as it is shown", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  assert.equal(download.suggestedFilename(), "ds_config.json");
}));

test("findings stand in the editor, a fix mends them, hovering explains", () => using("#check?language=en", async (page) => {
  const finding = page.locator(".findings li", { hasText: "overlap_com" });
  await finding.waitFor();
  await page.locator(".cm-lintRange").first().waitFor();
  await finding.getByRole("button", { name: /^Fix/ }).click();
  await finding.waitFor({ state: "detached" });
  assert.match(await page.locator(".cm-content").textContent(), /"overlap_comm"/);
  await page.locator(".cm-line", { hasText: "stage3_max_live" }).hover({ position: { x: 90, y: 9 } });
  await page.locator(".cm-tooltip-hover").waitFor();
}));

test("the check is the command line's", () => using("#check?language=en&world=8", async (page) => {
  await page.locator(".findings li").first().waitFor();
  const directory = await mkdtemp(join(tmpdir(), "page-"));
  await writeFile(join(directory, "ds_config.json"), (await page.locator(".cm-line").allTextContents()).join("\n"));
  const engine = await page.getByLabel("DeepSpeed", { exact: true }).inputValue();
  const line = `zeropilot check ds_config.json --world-size 8 --deepspeed-version ${engine}`;
  const [checked] = await cli(line, directory, "--output-format json");
  const codes = await page.$$eval(".findings li", (rows) => rows.map((row) => row.dataset.code));
  assert.ok(codes.length > 0);
  assert.deepEqual(codes, checked.diagnostics.map((finding) => finding.code));
}));

test("a link carries its section's own question, and never a text to check", () => using("#check?language=en", async (page) => {
  await page.locator(".findings li").first().waitFor();
  await page.locator(".cm-content").click();
  await page.keyboard.insertText('"secret_project": 1,');
  await page.getByLabel("Total GPUs").fill("8");
  await page.waitForFunction(() => location.hash.includes("world=8"));
  assert.doesNotMatch(await page.evaluate(() => location.href), /secret|language|theme/);
  await page.getByRole("link", { name: "Learn" }).click();
  await page.locator("[data-state=answered] .film").waitFor();
  assert.doesNotMatch(await page.evaluate(() => location.href), /world|secret/);
  await page.goBack();
  await page.locator(".cm-content").waitFor();
  assert.match(await page.locator(".cm-content").textContent(), /secret_project/, "Back keeps what was typed");
}));

test("language and theme are the reader's, keep the focus and outlive the page", () => using("#check", async (page) => {
  await page.locator(".findings li").first().waitFor();
  await page.getByRole("button", { name: "中文" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("html[lang=zh-CN]").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), "language");
  await page.goto("about:blank");
  await page.goto(`${server.address}#learn`);
  await page.locator("html[lang=zh-CN]").waitFor();
}));

test("the focus stays where it was after the theme, a section and a fix", () => using("#check?language=en", async (page) => {
  const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.className);
  await page.locator(".findings li").first().waitFor();
  await page.getByLabel("Theme").focus();
  await page.getByLabel("Theme").selectOption("dark");
  await page.locator("html[data-theme=dark]").waitFor();
  assert.equal(await focused(), "theme");
  await page.locator(".findings li .fix").first().focus();
  await page.keyboard.press("Enter");
  // The editor has a tree of its own.
  await page.waitForFunction(() => document.activeElement?.shadowRoot?.activeElement?.classList.contains("cm-content"));
  await page.getByRole("link", { name: "Plan" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".question").waitFor();
  assert.equal(await focused(), "to-plan");
}));

test("with forced colours what is chosen is outlined", async () => {
  const outlined = (page, selector) => page.$$eval(selector, (all) => all.map((element) => getComputedStyle(element)).map(({ outlineStyle, outlineWidth }) => outlineStyle === "solid" && parseFloat(outlineWidth) >= 2));
  await using("#learn?language=en", async (page) => {
    await page.locator("[data-state=answered] .film").waitFor();
    assert.deepEqual(await outlined(page, "nav a"), [false, false, true]);
    assert.deepEqual(await outlined(page, ".stage-row"), [false, false, false, true]);
    const methods = await page.$$eval(".segments input", (all) => all.map((input) => [input.checked, getComputedStyle(input.nextElementSibling).outlineStyle === "solid"]));
    for (const [checked, outline] of methods) assert.equal(outline, checked);
    const bars = await page.$$eval(".stage-bar rect[fill]", (all) => all.map((bar) => getComputedStyle(bar).fill));
    assert.ok(new Set(bars).size > 2, "parts keep their colours");
  }, { forcedColors: "active" });
});

test("a link that is pasted into a chat has a title, a text and a picture", async () => {
  const page = await (await fetch(server.address)).text();
  const property = (name) => new RegExp(`<meta (?:property|name)="${name}" content="([^"]+)"`).exec(page)?.[1];
  assert.match(property("og:title"), /zeropilot/);
  assert.ok(property("og:description").length > 40 && property("og:description").length < 200);
  assert.equal(property("twitter:card"), "summary_large_image");
  assert.ok(property("og:image:alt").length > 10);
  const image = Buffer.from(await (await fetch(new URL(property("og:image"), server.address))).arrayBuffer());
  assert.equal(image.subarray(1, 4).toString(), "PNG");
  assert.deepEqual([image.readUInt32BE(16), image.readUInt32BE(20)], [Number(property("og:image:width")), Number(property("og:image:height"))]);
});

test("the memory of the GPU is a line where the bars are on its scale", () => using("#learn?language=en&ranks=4&stage=0&card=A100-SXM4-80GB", async (page) => {
  await page.locator("[data-state=answered] .film").waitFor();
  const gpu = await cli("zeropilot memory --compare --model Qwen/Qwen3-8B --gpus 4xA100-SXM4-80GB --seq-len 4096");
  const seen = await page.evaluate(() => {
    const number = (element, name) => Number(element.getAttribute(name));
    const [row] = document.querySelectorAll(".stage-row");
    const parts = [...row.querySelectorAll("rect[fill]")];
    const [limit] = row.querySelectorAll(".limit");
    const film = document.querySelector(".film");
    return {
      bytes: Number(row.dataset.bytes), wide: parts.reduce((sum, part) => sum + number(part, "width"), 0), at: limit && number(limit, "x") + number(limit, "width") / 2,
      ranks: document.querySelectorAll(".rank .limit").length, note: document.querySelector(".limit-note").textContent, most: Number(film.dataset.most),
      film: film.querySelector(".limit") && 220 - number(film.querySelector(".limit"), "y") - 1.25,
    };
  });
  assert.ok(Math.abs(seen.at / seen.wide - gpu.capacity / seen.bytes) < 0.01, JSON.stringify([seen, gpu.capacity]));
  assert.ok(Math.abs(seen.film / 214 - gpu.capacity / seen.most) < 0.01);
  assert.equal(seen.ranks, 4);
  assert.match(seen.note, /red line/i);
}));

test("the grids below the ranks show whose shard each rank keeps", () => using("#learn?language=en&ranks=4&stage=1", async (page) => {
  await page.locator("[data-state=answered] .film").waitFor();
  const kept = () => page.$$eval(".rank-row figure", (ranks) => ranks.map((rank) => Object.fromEntries([...rank.querySelectorAll(".slices div")].map((row) =>
    [row.dataset.part, [...row.children].map((cell) => (cell.classList.contains("kept") ? 1 : 0)).join("")]))));
  const own = ["1000", "0100", "0010", "0001"];
  const one = await kept();
  assert.deepEqual(one.map((rank) => rank["optimizer_states"]), own);
  assert.deepEqual(one.map((rank) => rank["weights"]), own.map(() => "1111"));
  await page.getByLabel("ZeRO-3", { exact: true }).check();
  await page.waitForFunction(() => JSON.parse(document.querySelector(".stack").dataset.answered)[0] === 3);
  assert.deepEqual((await kept()).map((rank) => rank["weights"]), own);
}));

test("the editor is loaded when Check is opened, not before", () => using("#learn?language=en", async (page) => {
  await page.locator("[data-state=answered] .film").waitFor();
  const loaded = () => page.evaluate(() => performance.getEntriesByType("resource").map(({ name, decodedBodySize }) => [name, decodedBodySize]).filter(([name]) => name.endsWith(".js")));
  const largest = (files) => Math.max(...files.map(([, size]) => size));
  assert.ok(largest(await loaded()) < 150_000, JSON.stringify(await loaded()));
  await page.getByRole("link", { name: "Check" }).click();
  await page.locator(".cm-content").waitFor();
  assert.ok(largest(await loaded()) > 200_000);
}));

test("without a clipboard the link is copied another way, or the page says that it was not", () => using("#learn?language=en", async (page) => {
  await page.locator("[data-state=answered] .film").waitFor();
  await page.evaluate(() => { Object.defineProperty(navigator, "clipboard", { value: undefined }); document.execCommand = () => false; });
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByRole("button", { name: "The browser blocked copying" }).waitFor();
}));

test("all stages are drawn on one scale, and bars move to it", () => using("#learn?language=en&ranks=4&stage=0", async (page) => {
  await page.locator("[data-state=answered] .film").waitFor();
  const seen = [];
  for (const stage of [0, 1, 2, 3]) {
    await page.getByLabel(`ZeRO-${stage}`, { exact: true }).check();
    await page.waitForFunction((stage) => JSON.parse(document.querySelector(".stack").dataset.answered)[0] === stage, stage);
    for (const moment of ["After initialization", "After backward", "After the step"]) {
      await page.getByLabel(moment, { exact: true }).check();
      seen.push(...await page.evaluate(() => {
        const bytes = new Map([...document.querySelectorAll(".held tbody tr")].map((row) => [row.dataset.part, Number(row.dataset.bytes)]));
        return [...document.querySelectorAll(".rank")[1].querySelectorAll(".part")].map((bar) => [bytes.get(bar.dataset.part) ?? 0, Number(bar.getAttribute("height"))]);
      }));
    }
  }
  const [most, tall] = seen.reduce((a, b) => (b[0] > a[0] ? b : a));
  for (const [bytes, height] of seen) assert.ok(Math.abs(height - (bytes / most) * tall) < 0.02, `${bytes} bytes are ${height} pixels, ${most} are ${tall}`);
  const running = await page.evaluate(() => {
    document.querySelector("input[value='0']").click();
    return new Promise((done) => setTimeout(() => done(document.querySelector(".rank").getAnimations({ subtree: true }).length), 300));
  });
  assert.ok(running > 0, "bars shrink and grow in sight");
}));

test("the story has seven steps in both languages, each with numbers and a picture", async () => {
  for (const [language, start, next] of [["en", "Start the tour", "Next"], ["zh", "开始", "下一步"]]) {
    await using(`#learn?language=${language}&ranks=4`, async (page) => {
      await page.locator("[data-state=answered] .film").waitFor();
      const stages = [];
      for (let step = 1; step <= 7; step += 1) {
        await page.getByRole("button", { name: step === 1 ? start : next, exact: true }).click();
        await page.locator(`.story[data-step="${step}"]`).waitFor();
        await page.waitForFunction(() => /GiB/.test(document.querySelector(".story-text").textContent) && !/…|\{/.test(document.querySelector(".story-text").textContent));
        stages.push(await page.locator(".stage-row[aria-pressed=true]").getAttribute("id"));
      }
      assert.equal(await page.getByRole("button", { name: next, exact: true }).isDisabled(), true);
      assert.equal(stages.length, 7);
    });
  }
});

test("the film starts at its beginning and follows the pointer", () => using("#learn?language=en&ranks=4&stage=1", async (page) => {
  await page.locator("[data-state=answered] .film").waitFor();
  assert.equal(await page.locator("input.moment").inputValue(), "0");
  await page.locator(".film").scrollIntoViewIfNeeded();
  const box = await page.locator(".film").boundingBox();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 20);
  const [value, max] = await page.locator("input.moment").evaluate((range) => [Number(range.value), Number(range.max)]);
  assert.ok(Math.abs(value / max - 0.75) < 0.02);
  assert.ok(await page.locator(".axis span").count() >= 3);
}));

test("on a phone every target is large enough and no field makes the page zoom", async () => {
  for (const section of ["check", "learn", "plan"]) {
    await using(`#${section}?language=en${section === "plan" ? "&task=grpo" : ""}`, async (page) => {
      await page.waitForSelector(".findings li, [data-state=answered] .film, .answer[data-state=answered]");
      if (section === "plan") await page.waitForSelector(".lane");
      const small = await page.evaluate(() => [...document.querySelectorAll("main button, main [role=button], nav a, .tools button, .tools select, main input, main select")]
        .filter((element) => element.checkVisibility())
        .map((element) => [element.tagName, element.textContent.trim() || element.value, (element.closest("label") ?? element).getBoundingClientRect().height, parseFloat(getComputedStyle(element).fontSize), element.type])
        .filter(([tag, , height, font, type]) => height < 44 || (["INPUT", "SELECT"].includes(tag) && !["radio", "range"].includes(type) && font < 16)));
      assert.deepEqual(small, []);
    }, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  }
});

test("what ranks hold is what the command line says they hold", () => using("#learn?language=en&ranks=4&stage=2", async (page) => {
  await page.locator("[data-state=answered] .held").waitFor();
  const memory = await cli("zeropilot memory --model Qwen/Qwen3-8B --gpus 4 --stage 2 --seq-len 4096");
  for (const [label, moment] of [["After initialization", "after_init"], ["After backward", "after_backward"], ["After the step", "after_step"]]) {
    await page.getByLabel(label, { exact: true }).check();
    const shown = Object.fromEntries(await page.$$eval(".held tbody tr", (rows) => rows.map((row) => [row.dataset.part, Number(row.dataset.bytes)])));
    const held = memory.tensors[moment].device;
    const sum = (amounts) => Object.values(amounts).reduce((all, amount) => all + amount, 0);
    assert.equal(sum(shown), sum(held));
    assert.equal(shown.master_weights, held.master_weights);
    assert.equal(shown.optimizer_states ?? 0, (held.first_moment ?? 0) + (held.second_moment ?? 0));
  }
}));

test("a step as a film is what the command line says of it: the same peak, and gathers that come and go with the layers", () => using("#learn?language=en&ranks=4&stage=3", async (page) => {
  await page.locator("[data-state=answered] .film").waitFor();
  const frames = await page.evaluate(() => {
    const range = document.querySelector("input.moment");
    return Array.from({ length: Number(range.max) + 1 }, (_, place) => {
      range.value = String(place);
      range.dispatchEvent(new Event("input", { bubbles: true }));
      return [...document.querySelectorAll(".amounts .amount")].map((output) => Number(output.dataset.bytes));
    });
  });
  const memory = await cli("zeropilot memory --model Qwen/Qwen3-8B --gpus 4 --stage 3 --seq-len 4096");
  const sum = (amounts) => amounts.reduce((all, amount) => all + amount, 0);
  const tensors = Object.entries(memory.device.at_peak).filter(([name]) => name !== "runtime").map(([, amount]) => amount);
  assert.equal(Math.max(...frames.map(sum)), sum(tensors));
  const names = await page.$$eval(".amounts li", (rows) => rows.map((row) => row.textContent));
  const gathered = frames.map((frame) => frame[names.findIndex((name) => name.includes("gathered"))]);
  const falls = gathered.filter((amount, place) => amount < gathered[place - 1]).length;
  // 36 layers, forward and backward.
  assert.ok(falls >= 36, `${falls} times something is let go`);
  await page.locator(".head", { has: page.getByRole("heading", { name: "During one step", exact: true }) }).getByRole("button", { name: "Play" }).click();
  const place = await page.locator("input.moment").inputValue();
  await page.waitForFunction((before) => document.querySelector("input.moment").value !== before, place);
}));

test("what it costs to finish is the command line's bill", () => using("#plan?language=en&goal=10B&price=2.5", async (page) => {
  await answered(page);
  await page.locator(".bill").waitFor();
  const directory = await mkdtemp(join(tmpdir(), "page-"));
  await writeFile(join(directory, "ds_config.json"), await page.textContent(".config"));
  const command = (await page.locator(".command").allTextContents()).find((line) => line.includes(" simulate "));
  const { cost_estimate: bill } = await cli(command, directory);
  const shown = await page.$eval(".bill", (element) => [Number(element.dataset.hours), Number(element.dataset.cost)]);
  assert.deepEqual(shown, [bill.gpu_hours.expected, bill.cost.expected]);
  assert.match(await page.textContent(".bill"), /10 billion tokens.* at 2\.5 per GPU hour/);
}));

test("after the first load the page answers with its server gone", async () => {
  const own = await serve();
  const seen = await open(chrome, own, "#plan?language=en");
  try {
    const { page } = seen;
    await answered(page);
    await page.evaluate(() => navigator.serviceWorker.ready);
    await own.close();
    await page.context().setOffline(true);
    await page.goto(`${own.address}?offline#plan?language=en&card=RTX-4090&count=4`);
    await answered(page);
    assert.match(await page.textContent(".command"), /4xRTX-4090/);
    assert.equal(await page.locator(".problem").count(), 0);
  } finally {
    await seen.close();
  }
});

test("a host knows how long each file may be kept, and has it compressed", async () => {
  const names = (await readdir(dist)).filter((name) => !/\.(gz|br)$|^_headers$/.test(name));
  const page = await readFile(join(dist, "index.html"), "utf8");
  for (const kind of ["main", "style", "zeropilot"]) assert.ok(names.some((name) => name.startsWith(`${kind}-`) && page.includes(`"${name}"`)), kind);
  for (const name of [...names, ""]) {
    const answer = await fetch(server.address + name);
    const content = Buffer.from(await answer.arrayBuffer());
    const forever = /-\w{8}\.(js|css|wasm)$/.test(name);
    assert.equal(answer.headers.get("cache-control"), forever ? "public, max-age=31536000, immutable" : "no-cache", name);
    assert.doesNotMatch(answer.headers.get("content-type"), /undefined/, name);
    assert.ok(page.includes(`content="${answer.headers.get("content-security-policy")}"`), name);
    if (name === "" || name.endsWith(".png")) continue;
    assert.deepEqual(gunzipSync(await readFile(join(dist, `${name}.gz`))), content, name);
    assert.deepEqual(brotliDecompressSync(await readFile(join(dist, `${name}.br`))), content, name);
  }
});

test("a printed plan has the answer on white paper, the whole config, and nothing to press", () => using("#plan?language=en&theme=dark", async (page) => {
  await answered(page);
  await page.waitForSelector(".step figure:nth-of-type(2)");
  await page.emulateMedia({ media: "print" });
  const seen = await page.evaluate(() => ({
    pressed: [...document.querySelectorAll("button, select, input, nav")].filter((element) => element.checkVisibility()).length,
    hidden: document.querySelector(".config").scrollHeight - document.querySelector(".config").clientHeight,
    background: getComputedStyle(document.body).backgroundColor,
  }));
  assert.deepEqual(seen, { pressed: 0, hidden: 0, background: "rgb(255, 255, 255)" });
  assert.equal((await page.pdf({ format: "A4", printBackground: true })).subarray(0, 5).toString(), "%PDF-");
}));

test("the content policy allows no script and no style but the page's own", () => using("#plan?language=en", async (page) => {
  await answered(page);
  const policy = await page.getAttribute("meta[http-equiv=Content-Security-Policy]", "content");
  assert.doesNotMatch(policy.replace("'wasm-unsafe-eval'", ""), /unsafe|\*|https?:/);
  assert.match(policy, /^default-src 'none';/);
}));

for (const section of ["plan", "check", "learn"]) {
  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 390]) {
      test(`${section} in ${theme} at ${width} pixels is accessible and does not scroll sideways`, async () => {
        const seen = await open(chrome, server, `#${section}?language=${width === 390 ? "zh" : "en"}&theme=${theme}`, { viewport: { width, height: 900 }, bypassCSP: true });
        const { page } = seen;
        await page.waitForSelector(".answer[data-state=answered], .findings li, [data-state=answered] .held");
        if (section === "plan") await page.waitForSelector(".step figure:nth-of-type(2)");
        await page.addScriptTag({ path: axe });
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3)}`), []);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(wide, 0);
        await seen.close();
      });
    }
  }
}
