// Renews the pictures of the page in the READMEs and the book, from the page that web/build.sh has built:
//
//   node web/pictures.mjs
//
//   ZEROPILOT_CHROMIUM  the browser (default: /usr/bin/chromium, with fonts-noto-cjk for Chinese)

import { fileURLToPath } from "node:url";
import { answered, browser, open, serve } from "./tests/harness.mjs";

/// Three machines for one model, side by side; what is pinned stands before the current one.
const MODEL = "Qwen/Qwen3-14B";
const PINNED = [{ card: "A100-SXM4-80GB", count: 8 }, { card: "H100-SXM5-80GB", count: 8 }];
const CURRENT = { card: "H200-SXM-141GB", count: 4 };
const PRICES = { en: "$2.5", zh: "¥18" };
const SIZE = { width: 1200, height: 1400 };

const server = await serve();
const chrome = await browser();
for (const [language, price] of Object.entries(PRICES)) {
  const about = (machines) => ({ model: MODEL, ...machines, goal: "10B", price });
  const pins = PINNED.map((machines) => String(new URLSearchParams(about(machines)))).join("|");
  const question = new URLSearchParams({ language, theme: "light", ...about(CURRENT), pins });
  const { page, close } = await open(chrome, server, `#plan?${question}`, { viewport: SIZE, locale: language === "zh" ? "zh-CN" : "en-US" });
  await answered(page);
  await page.waitForFunction(() => document.querySelectorAll(".sides thead th").length === 3 && !document.querySelector(".sides").textContent.includes("…"), undefined, { timeout: 120_000 });
  const path = fileURLToPath(new URL(`../docs/images/page-plan-${language}.png`, import.meta.url));
  // To the end of the comparison, with a margin.
  const { y, height } = await page.locator(".compare-panel").boundingBox();
  await page.screenshot({ path, clip: { x: 0, y: 0, width: SIZE.width, height: Math.ceil(y + height) + 16 } });
  console.log(path);
  await close();
}
await chrome.close();
await server.close();
