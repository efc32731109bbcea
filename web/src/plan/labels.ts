// The command line's words where the page has fields: options become the names of fields.

import type { Say, Word } from "../words";
import type { State } from "../state";

const FIELDS: [option: string, key: keyof State, word: Word][] = [
  ["--global-batch", "batch", "batch"], ["--host-ram", "hostRam", "hostRam"], ["--seq-len", "sequence", "sequence"], ["--method", "method", "method"],
  ["--precision", "precision", "precision"], ["--gpus", "card", "card"], ["--tokens", "goal", "goal"], ["--cost", "price", "price"],
  ["--sequence-parallel", "shares", "shares"], ["--task", "task", "task"], ["--teacher", "teacher", "teacher"], ["--rollout", "rollout", "rollout"], ["--completion-len", "completion", "completion"], ["--fused-loss", "fusedLoss", "fusedLoss"], ["--model", "model", "model"],
  ["--stage", "heldStage", "heldStage"], ["--offload", "heldOffload", "heldOffload"], ["--micro-batch", "heldMicro", "heldMicro"],
  ["--grad-checkpointing", "heldRecompute", "heldRecompute"],
];

const pattern = (option: string) => new RegExp(`\`?${option}(?![\\w-])(?: (?=\\d|lora|qlora))?\`?`, "g");

export function labelled(text: string, say: Say): string {
  const quoted = (word: Word) => `“${say(word)}” `;
  return FIELDS.reduce((text, [option, , word]) => text.replace(pattern(option), quoted(word)), text).replace(/” +(?=[\s)）；;，,.。]|$)/g, "”");
}

/// Fields that a problem speaks of.
export function blamed(text: string): (keyof State)[] {
  return FIELDS.filter(([option]) => pattern(option).test(text)).map(([, key]) => key);
}

/// A problem of the command line: what is wrong, and what to do.
export function problem(text: string): { wrong: string; help: string[] } {
  const [wrong = "", ...rest] = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const bare = (line: string) => line.replace(/^(error: |错误：|help: |建议：)/, "");
  return { wrong: bare(wrong), help: rest.map(bare) };
}
