// Questions to the engine, answered in order.

import type { Language } from "./words";

export type Verb = "plan" | "memory" | "compare" | "simulate" | "film" | "check" | "fix" | "recognize" | "diagnose" | "explain" | "complete" | "catalogue";
export interface Call { id: number; verb: Verb; question: string }
export interface Answer<J, W> { json: J; words: W }
export interface Reply { id: number; answer?: Answer<unknown, unknown> | { problem: string }; took?: number; broken?: string }

/// A question that has no answer, in the words of the command line.
export class Problem extends Error {}

interface Waiting { resolve: (answer: never) => void; reject: (error: Error) => void }

/// Long searches have a thread of their own: quick answers do not wait behind them.
const LONG: ReadonlySet<Verb> = new Set(["plan", "simulate"]);
const workers: { quick?: Worker; long?: Worker } = {};
/// Files of this build; written by the build.
declare const WASM: string;
declare const WORKER: string;
/// Compiled once, run in every thread.
const compiled = WebAssembly.compileStreaming(fetch(WASM))
  // Some hosts do not know what a .wasm file is.
  .catch(async () => WebAssembly.compile(await (await fetch(WASM)).arrayBuffer()));
const waiting = new Map<number, Waiting>();
let last = 0;

function start(): Worker {
  const started = new Worker(WORKER, { type: "module" });
  started.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (!asked) return;
    if (data.broken !== undefined || !data.answer) asked.reject(new Error(data.broken));
    else if ("problem" in data.answer) asked.reject(new Problem(data.answer.problem));
    else asked.resolve(data.answer as never);
  });
  started.addEventListener("error", (event) => {
    for (const asked of waiting.values()) asked.reject(new Error(event.message || "the WebAssembly module did not load"));
    waiting.clear();
  });
  void compiled.then((module) => started.postMessage(module), () => undefined);
  return started;
}

/// What was asked in an idle thread that had to end.
export class Interrupted extends Error {}

let idler: { worker: Worker; ids: Set<number> } | undefined;

/// A question that may wait: it has a thread of its own, which `interrupt` ends at once, so that it delays no other.
export async function idle<J, W>(verb: Verb, language: Language, question: object): Promise<Answer<J, W>> {
  const mine = (idler ??= { worker: start(), ids: new Set() });
  await compiled;
  if (mine !== idler) throw new Interrupted();
  const { worker, ids } = mine;
  const id = ++last;
  ids.add(id);
  const call: Call = { id, verb, question: JSON.stringify({ ...question, language }) };
  return new Promise<Answer<J, W>>((resolve, reject) => {
    waiting.set(id, { resolve: resolve as Waiting["resolve"], reject });
    worker.postMessage(call);
  }).finally(() => ids.delete(id));
}

export function interrupt(): void {
  const ended = idler;
  idler = undefined;
  ended?.worker.terminate();
  for (const id of ended?.ids ?? []) {
    waiting.get(id)?.reject(new Interrupted());
    waiting.delete(id);
  }
}

/// Starts what the first answer needs, before anybody asks.
export function warm(): void {
  workers.quick ??= start();
}

/// Asks before the place of the answer is ready; whoever puts the same question first gets it.
export function ahead(verb: Verb, language: Language, question: object): void {
  const text = JSON.stringify({ ...question, language });
  const answer = put(verb, text);
  answer.catch(() => undefined);
  asked = { key: verb + text, answer };
}
let asked: { key: string; answer: Promise<Answer<unknown, unknown>> } | undefined;

export async function ask<J, W>(verb: Verb, language: Language, question: object): Promise<Answer<J, W>> {
  const text = JSON.stringify({ ...question, language });
  const known = asked?.key === verb + text ? asked.answer : undefined;
  asked = known ? undefined : asked;
  return await (known ?? put(verb, text)) as Answer<J, W>;
}

async function put(verb: Verb, question: string): Promise<Answer<unknown, unknown>> {
  const kind = LONG.has(verb) ? "long" : "quick";
  const worker = (workers[kind] ??= start());
  await compiled;
  const id = ++last;
  const call: Call = { id, verb, question };
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve: resolve as Waiting["resolve"], reject });
    worker.postMessage(call);
  });
}

/// Runs the newest of many requests: while one is under way only the last that came is kept.
export function newest<T>(run: (input: T) => Promise<void>): (input: T) => void {
  let busy = false;
  let next: { input: T } | undefined;
  const go = async (input: T): Promise<void> => {
    busy = true;
    try {
      await run(input);
    } finally {
      busy = false;
      const following = next;
      next = undefined;
      if (following) void go(following.input);
    }
  };
  return (input) => {
    if (busy) next = { input };
    else void go(input);
  };
}
