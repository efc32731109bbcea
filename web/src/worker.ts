// The engine in a thread of its own: the page stays responsive while a plan is searched.

import init, * as engine from "../dist/engine/zeropilot_wasm.js";
import type { Call, Reply, Verb } from "./engine";

const verbs: Record<Verb, (question: string) => string> = { ...engine, memory: engine.memory_of };
let ready: Promise<unknown> | undefined;

self.addEventListener("message", async (event: MessageEvent<Call | WebAssembly.Module>) => {
  if (event.data instanceof WebAssembly.Module) {
    ready = init({ module_or_path: event.data });
    return;
  }
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
