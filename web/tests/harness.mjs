// A browser, the built page on a port of its own, and the command line to compare with.

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

export const dist = fileURLToPath(new URL("../dist", import.meta.url));

/// The headers of the build by path: a path on a line, its headers below it.
async function described() {
  const rules = new Map();
  let rule;
  for (const line of (await readFile(join(dist, "_headers"), "utf8")).split("\n").filter(Boolean)) {
    const [, name, value] = /^  ([\w-]+): (.*)$/.exec(line) ?? [];
    if (name) rule[name.toLowerCase()] = value;
    else rules.set(line, rule = {});
  }
  return (path) => ({ ...rules.get("/*"), ...rules.get(path) });
}

/// The page's files and nothing else, as a host serves them that reads `_headers`.
export async function serve() {
  const headers = await described();
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://page").pathname;
    const file = join(dist, normalize(path === "/" ? "/index.html" : path));
    try {
      const content = await readFile(file);
      response.writeHead(200, headers(path)).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const address = `http://127.0.0.1:${server.address().port}/`;
  return { address, close: () => new Promise((done) => { server.closeAllConnections(); server.close(done); }) };
}

export async function browser() {
  const executablePath = process.env.ZEROPILOT_CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/// A page that fails on errors, on what the content policy refuses and on requests beyond its own files.
export async function open(browser, server, fragment, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, locale: "en-US", permissions: ["clipboard-read", "clipboard-write"], ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) wrong.push(message.text()); });
  page.on("pageerror", (error) => wrong.push(String(error)));
  context.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(server.address) && !url.startsWith("blob:") ) wrong.push(`request to ${url}`);
  });
  await page.goto(server.address + fragment);
  return { page, wrong, close: () => context.close() };
}

export async function answered(page) {
  await page.waitForSelector(".answer[data-state=answered], .answer[data-state=problem]", { state: "attached", timeout: 60_000 });
}

const run = promisify(execFile);

/// What the command line prints as JSON; that something does not fit (exit 1) is an answer too.
export async function cli(line, cwd, json = "--json") {
  const binary = process.env.ZEROPILOT_BIN;
  if (!binary) throw new Error("ZEROPILOT_BIN names no zeropilot to compare with");
  const script = `${line.replace(/^zeropilot /, '"$ZEROPILOT_BIN" ')} ${json}`;
  const options = { cwd, maxBuffer: 1 << 26, env: { ...process.env, HF_HUB_OFFLINE: "1" } };
  const { stdout } = await run("sh", ["-c", script], options).catch((error) => {
    if (error.code !== 1) throw error;
    return error;
  });
  return JSON.parse(stdout);
}
