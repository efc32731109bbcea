// Whether the config in the editor fits on GPUs: Plan's question, with this config.

import type { App } from "../app";
import type { Memory, MemoryWords } from "../answers";
import { number, text } from "../controls";
import { h } from "../dom";
import { ask, newest, Problem } from "../engine";
import * as questions from "../questions";
import { gpus } from "../state";

export interface Fit {
  element: HTMLElement;
  ask(config: string, loads: boolean, script: Record<string, unknown>): void;
  hide(): void;
}

/// `8xA100-80G` or `2x8xH100` as the form of Plan keeps it; `null` where it is something else.
function machines(typed: string): { count: number; nodes: number; card: string } | null {
  const [, nodes, count, card] = /^(?:(\d+)\s*[x×*]\s*)?(\d+)\s*[x×*]\s*([^\s].*)$/i.exec(typed.trim()) ?? [];
  return card && count ? { nodes: Number(nodes ?? 1), count: Number(count), card: card.trim() } : null;
}

export function fit(app: App): Fit {
  const { say, set } = app;
  const answer = h("div", { class: "fit-answer" });
  let last: { config: string; loads: boolean; script: Record<string, unknown> } | undefined;
  const run = newest<void>(async () => {
    if (!last) return;
    const { config, loads, script } = last;
    if (!loads) {
      answer.replaceChildren(h("p", { class: "soft" }, say("fitNot")));
      return;
    }
    const { state } = app;
    const given = (name: string) => (typeof script[name] === "number" ? script[name] : null);
    const request = {
      machines: { gpus: gpus(state), host_ram: state.hostRam.trim() || null },
      config: { name: "ds_config.json", bytes: config },
      training: {
        seq_len: state.sequence, method: state.method, lora_rank: state.rank,
        micro_batch: given("per_device_train_batch_size"), grad_accum: given("gradient_accumulation_steps"),
      },
    };
    try {
      const { json, words } = await ask<Memory, MemoryWords>("memory", state.language, { model: questions.model(state), request });
      answer.replaceChildren(
        h("p", { class: "fit-verdict", "data-bytes": json.device.expected },
          h("strong", { class: json.device.verdict ?? "" }, words.row.verdict ?? ""), ` ${words.row.need}`),
        h("details", {}, h("summary", {}, say("fitFull")), h("pre", { class: "code wrap", tabindex: "0" }, words.text.trimEnd())),
        h("pre", { class: "code wrap command" }, command(app, request.training.micro_batch, request.training.grad_accum)));
    } catch (error) {
      answer.replaceChildren(h("pre", { class: error instanceof Problem ? "problem" : "problem broken" }, String((error as Error).message)));
    }
    element.dataset["asked"] = String(config.length);
  });
  const models = h("datalist", { id: "fit-models" }, ...app.catalogue.models.map(({ id }) => h("option", { value: id })));
  const model = text(say("model"), questions.model(app.state).name, "", (name) => { set({ model: name, config: "" }); run(); });
  model.querySelector("input")?.setAttribute("list", "fit-models");
  const form = h("form", { class: "row fit-form", submit: (event) => event.preventDefault() },
    model, models,
    text(say("gpus"), gpus(app.state), say("gpusHint"), (typed) => { const found = machines(typed); if (found) { set(found); run(); } }),
    number(say("sequence"), app.state.sequence, 1, 1 << 24, "", (sequence) => { set({ sequence }); run(); }));
  const element = h("section", { class: "panel fit" }, h("h2", {}, say("fit")), h("p", { class: "soft" }, say("fitLead")), form, answer);
  element.hidden = true;
  return {
    element,
    ask: (config, loads, script) => { element.hidden = false; last = { config, loads, script }; run(); },
    hide: () => { element.hidden = true; },
  };
}

function command(app: App, micro: unknown, accumulation: unknown): string {
  const { state } = app;
  const option = (name: string, value: unknown) => (value === null ? "" : ` ${name} ${String(value)}`);
  const method = state.method === "full" ? "" : ` --method ${state.method} --lora-rank ${state.rank}`;
  return `zeropilot memory --config ds_config.json --model ${questions.model(state).name} --gpus ${gpus(state)} --seq-len ${state.sequence}${method}${option("--micro-batch", micro)}${option("--grad-accum", accumulation)}`;
}
