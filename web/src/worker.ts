// The engine in a thread of its own: the page stays responsive while a plan is searched.

import init, * as engine from "../dist/engine/zeropilot_wasm.js";
import type { Call, Reply, Verb } from "./engine";

const verbs: Record<Verb, (question: string) => string> = { ...engine, memory: engine.memory_of };
const ready = init({ module_or_path: new URL("zeropilot_wasm_bg.wasm", self.location.href) });

self.addEventListener("message", async (event: MessageEvent<Call>) => {
  const { id, verb, question } = event.data;
  let reply: Reply;
  try {
    await ready;
    const begin = performance.now();
    const answer = JSON.parse(verbs[verb](question));
    reply = { id, answer, took: performance.now() - begin };
  } catch (error) {
    reply = { id, broken: String(error) };
  }
  self.postMessage(reply);
});
