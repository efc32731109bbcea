// What is asked, as it stands in the address: a link shares a question.

import type { Language } from "./words";

export type Section = "plan" | "check" | "learn";
export type Theme = "auto" | "light" | "dark";
export type Method = "full" | "lora" | "qlora";

export interface State {
  section: Section; language: Language; theme: Theme;
  model: string; config: string; card: string; count: number; nodes: number; hostRam: string;
  method: Method; rank: number; precision: "bf16" | "fp16" | "fp32"; sequence: number; batch: number;
  fusedLoss: "no" | "yes" | "either"; objective: "time" | "memory"; target: string; goal: string; price: string;
  text: string; engine: string; frontEnd: string; world: number;
  stage: number; ranks: number;
}

export const DEFAULTS: State = {
  section: "plan", language: "en", theme: "auto",
  model: "Qwen/Qwen3-8B", config: "", card: "A100-SXM4-80GB", count: 8, nodes: 1, hostRam: "",
  method: "full", rank: 16, precision: "bf16", sequence: 4096, batch: 0,
  fusedLoss: "no", objective: "time", target: "deepspeed", goal: "", price: "",
  text: "", engine: "", frontEnd: "", world: 0,
  stage: 3, ranks: 4,
};

const KEYS = Object.keys(DEFAULTS).filter((key) => key !== "section") as (keyof State)[];
const SECTIONS: Section[] = ["plan", "check", "learn"];
const CHOICES: Partial<Record<keyof State, readonly string[]>> = {
  language: ["en", "zh"], theme: ["auto", "light", "dark"], method: ["full", "lora", "qlora"],
  precision: ["bf16", "fp16", "fp32"], fusedLoss: ["no", "yes", "either"], objective: ["time", "memory"],
};

/// `#plan?model=…&card=…`: only what differs from `base` is written.
export function write(state: State, base: State): string {
  const parameters = new URLSearchParams();
  for (const key of KEYS) if (state[key] !== base[key]) parameters.set(key, String(state[key]));
  const query = parameters.toString();
  return `#${state.section}${query ? `?${query}` : ""}`;
}

/// What cannot be understood is left as it is in `base`.
export function read(fragment: string, base: State): State {
  const [section = "", query = ""] = fragment.replace(/^#/, "").split(/\?(.*)/s);
  const state: Record<string, string | number> = { ...base };
  if ((SECTIONS as string[]).includes(section)) state["section"] = section;
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
