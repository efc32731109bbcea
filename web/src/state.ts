// What is asked, as it stands in the address: a link shares a question.

import type { Language } from "./words";

export type Section = "plan" | "check" | "learn";
export type Theme = "auto" | "light" | "dark";
export type Method = "full" | "lora" | "qlora";

/// What a model can be trained for.
export const TASKS = ["sft", "dpo", "kto", "orpo", "cpo", "reward", "distill", "gkd", "grpo", "rloo", "ppo"];
/// What there is to say of a task beside its name.
const TEACHERS: ReadonlySet<string> = new Set(["distill", "gkd"]);
const ROLLOUTS: Record<string, readonly string[]> = { grpo: ["generate", "vllm", "server"], rloo: ["generate", "vllm", "server"], gkd: ["generate", "vllm", "server", "none"] };
const COMPLETIONS: ReadonlySet<string> = new Set(["dpo", "kto", "grpo", "rloo", "ppo", "distill", "gkd"]);

export const hasTeacher = (task: string) => TEACHERS.has(task);
export const rollouts = (task: string): readonly string[] => ROLLOUTS[task] ?? [];
export const hasCompletions = (task: string) => COMPLETIONS.has(task);

export interface State {
  section: Section; language: Language; theme: Theme;
  model: string; config: string; card: string; count: number; nodes: number; hostRam: string;
  method: Method; rank: number; precision: "bf16" | "fp16" | "fp32"; sequence: number; batch: number;
  fusedLoss: "no" | "yes" | "either"; objective: "time" | "cost" | "memory"; target: string; goal: string; price: string;
  shares: number; task: string; teacher: string; rollout: string; completion: number; pins: string;
  /// What a plan must keep; empty or 0 where it chooses.
  heldStage: "" | "0" | "1" | "2" | "3"; heldOffload: "" | "none" | "optimizer" | "all"; heldMicro: number; heldRecompute: "" | "no" | "yes";
  text: string; engine: string; frontEnd: string; world: number;
  stage: number; ranks: number; micro: number; recompute: "no" | "yes"; offload: "none" | "optimizer" | "all";
}

export const DEFAULTS: State = {
  section: "plan", language: "en", theme: "auto",
  model: "Qwen/Qwen3-8B", config: "", card: "A100-SXM4-80GB", count: 8, nodes: 1, hostRam: "",
  method: "full", rank: 16, precision: "bf16", sequence: 4096, batch: 0,
  fusedLoss: "no", objective: "time", target: "deepspeed", goal: "1B", price: "",
  shares: 0, task: "sft", teacher: "", rollout: "", completion: 0, pins: "", heldStage: "", heldOffload: "", heldMicro: 0, heldRecompute: "",
  text: "", engine: "", frontEnd: "", world: 0,
  stage: 3, ranks: 4, micro: 1, recompute: "no", offload: "none",
};

/// What the reader chose for themselves: no link brings it, though one may ask for it.
const READER: (keyof State)[] = ["section", "language", "theme"];
/// What belongs to one section. The rest is the question of Plan, which the others share. A text to check is in no link.
const OWN: Record<Exclude<Section, "plan">, (keyof State)[]> = {
  check: ["engine", "frontEnd", "world"], learn: ["stage", "ranks", "micro", "recompute", "offload"],
};
const SHARED: Record<Exclude<Section, "plan">, (keyof State)[]> = {
  check: ["model", "config", "card", "count", "nodes", "sequence", "method", "rank"],
  learn: ["model", "config", "card", "sequence", "method", "rank", "precision"],
};
const KEYS = Object.keys(DEFAULTS).filter((key) => key !== "section" && key !== "text") as (keyof State)[];

/// What a link to a section carries.
function carried(section: Section): (keyof State)[] {
  if (section !== "plan") return [...SHARED[section], ...OWN[section]];
  return KEYS.filter((key) => !READER.includes(key) && !OWN.check.includes(key) && !OWN.learn.includes(key));
}
const SECTIONS: Section[] = ["plan", "check", "learn"];
const CHOICES: Partial<Record<keyof State, readonly string[]>> = {
  language: ["en", "zh"], theme: ["auto", "light", "dark"], method: ["full", "lora", "qlora"],
  precision: ["bf16", "fp16", "fp32"], fusedLoss: ["no", "yes", "either"], objective: ["time", "cost", "memory"], recompute: ["no", "yes"], offload: ["none", "optimizer", "all"],
  heldStage: ["", "0", "1", "2", "3"], heldOffload: ["", "none", "optimizer", "all"], heldRecompute: ["", "no", "yes"],
  task: TASKS, rollout: ["", "generate", "vllm", "server", "none"],
};

/// `#plan?model=…&card=…`: only what the section asks and what differs from `base` is written.
export function write(state: State, base: State): string {
  const parameters = new URLSearchParams();
  for (const key of carried(state.section)) if (state[key] !== base[key]) parameters.set(key, String(state[key]));
  const query = parameters.toString();
  return `#${state.section}${query ? `?${query}` : ""}`;
}

/// What cannot be understood is left as it is in `base`; what a link to this section does not carry stays as it is in `current`.
export function read(fragment: string, base: State, current: State): State {
  const [section = "", query = ""] = fragment.replace(/^#/, "").split(/\?(.*)/s);
  const state: Record<string, string | number> = { ...current };
  if ((SECTIONS as string[]).includes(section)) state["section"] = section;
  for (const key of carried(state["section"] as Section)) state[key] = base[key];
  for (const [key, value] of new URLSearchParams(query)) {
    if (!(KEYS as string[]).includes(key)) continue;
    const known = CHOICES[key as keyof State];
    if (known && !known.includes(value)) continue;
    if (typeof base[key as keyof State] === "number") {
      const number = Number(value);
      if (Number.isSafeInteger(number) && number >= 0) state[key] = number;
    } else state[key] = value;
  }
  return state as unknown as State;
}

/// The GPUs as the command line reads them.
export function gpus(state: State): string {
  const card = state.card.trim();
  return state.nodes > 1 ? `${state.nodes}x${state.count}x${card}` : `${state.count}x${card}`;
}
