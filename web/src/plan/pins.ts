// Answers that are kept for comparison: as questions, in the address.

import { DEFAULTS, type State } from "../state";

/// What a plan depends on.
const KEYS = [
  "model", "config", "card", "count", "nodes", "hostRam", "method", "rank", "precision", "sequence", "batch", "fusedLoss", "objective",
  "target", "goal", "price", "shares", "task", "teacher", "rollout", "completion",
  "heldStage", "heldOffload", "heldMicro", "heldRecompute",
] as const satisfies (keyof State)[];

export const MOST_PINS = 3;

/// A question as it is pinned: what differs from the usual one.
export function pin(state: State): string {
  const said = KEYS.filter((key) => state[key] !== DEFAULTS[key]).map((key): [string, string] => [key, String(state[key])]);
  return new URLSearchParams(said).toString() || "usual";
}

/// The questions that are pinned, in the language of the page.
export function pinned(state: State): State[] {
  return texts(state).map((text) => {
    const said = new URLSearchParams(text === "usual" ? "" : text);
    const own: Record<string, string | number> = {};
    for (const key of KEYS) {
      const value = said.get(key);
      const usual = DEFAULTS[key];
      const number = Number(value);
      own[key] = value === null ? usual : typeof usual !== "number" ? value : Number.isSafeInteger(number) && number >= 0 ? number : usual;
    }
    return { ...state, ...own } as State;
  });
}

export function texts(state: State): string[] {
  return state.pins.split("|").filter(Boolean).slice(0, MOST_PINS);
}

export function withPin(state: State): string {
  return [...new Set([...texts(state), pin(state)])].slice(0, MOST_PINS).join("|");
}

export function withoutPin(state: State, index: number): string {
  return texts(state).filter((_, place) => place !== index).join("|");
}
