// What a static host needs beside the page's files: compressed copies, and their headers in the form that many hosts read.
// Files with a hash in their name never change; browsers ask for the others again.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, gzipSync } from "node:zlib";

const dist = new URL("dist/", import.meta.url);
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", wasm: "application/wasm", svg: "image/svg+xml", txt: "text/plain; charset=utf-8", png: "image/png" };
const HASHED = /-[0-9A-Z]{8}\.(js|css|wasm)$/;

const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(readFileSync(new URL("index.html", dist), "utf8"))?.[1];
if (!policy) throw new Error("index.html has no content security policy");
const headers = ["/*", `  Content-Security-Policy: ${policy}`, "  Referrer-Policy: no-referrer", "  X-Content-Type-Options: nosniff"];
const describe = (path, type, cache) => headers.push(path, `  Content-Type: ${type}`, `  Cache-Control: ${cache}`);
describe("/", TYPES.html, "no-cache");
const total = { gzip: 0, brotli: 0 };
for (const name of readdirSync(dist).sort()) {
  describe(`/${name}`, TYPES[name.split(".").at(-1)], HASHED.test(name) ? "public, max-age=31536000, immutable" : "no-cache");
  const content = readFileSync(new URL(name, dist));
  const gzip = gzipSync(content, { level: 9 });
  const brotli = brotliCompressSync(content);
  total.gzip += gzip.length;
  total.brotli += brotli.length;
  console.log(`page: ${name} ${brotli.length} bytes with brotli`);
  if (name.endsWith(".png")) continue;
  writeFileSync(new URL(`${name}.gz`, dist), gzip);
  writeFileSync(new URL(`${name}.br`, dist), brotli);
}
writeFileSync(new URL("_headers", dist), `${headers.join("\n")}\n`);
console.log(`page: ${total.gzip} bytes compressed with gzip`);
console.log(`page: ${total.brotli} bytes with brotli`);
