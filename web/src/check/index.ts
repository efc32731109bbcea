// Check: a config as it is typed, with what the engine and its front ends would say.

import type { Diagnostic } from "@codemirror/lint";
import type { App, Part } from "../app";
import type { Check, Finding } from "../answers";
import { number, select } from "../controls";
import { h, marked } from "../dom";
import { ask, newest } from "../engine";
import { editor } from "./editor";

const EXAMPLE = `{
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 4,
  "bf16": { "enabled": true },
  "zero_optimization": {
    "stage": 3,
    "overlap_com": true,
    "stage3_max_live_parameters": 1e9,
    "offload_optimizer": { "device": "cpu", "pin_memory": true }
  },
  "optimizer": { "type": "AdamW", "params": { "lr": 5e-5 } }
}
`;

const SEVERITIES: Record<string, Diagnostic["severity"]> = { error: "error", warning: "warning", info: "info" };

/// The engine counts bytes, an editor counts UTF-16 units.
function units(text: string): (bytes: number) => number {
  if (/^[\x00-\x7f]*$/.test(text)) return (place) => Math.min(place, text.length);
  const encoded = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  return (place) => Math.min(decoder.decode(encoded.subarray(0, place)).length, text.length);
}

export function check(app: App, isDark: boolean): Part {
  const { say, set, catalogue } = app;
  const findings = h("section", { class: "panel", "aria-live": "polite" });
  const explain = async (path: string) => {
    const topic = { topic: path, deepspeed_version: app.state.engine || null };
    const answer = await ask<unknown, { markdown: string | null }>("explain", app.state.language, topic).catch(() => null);
    return answer?.words.markdown ?? null;
  };
  const edit = editor(say("checkConfig"), app.state.text || EXAMPLE, isDark, () => set({ text: edit.text() }), explain);

  const run = newest<string>(async (text) => {
    const { state } = app;
    const judging = { world_size: state.world || null, front_end: state.frontEnd || null };
    const question = { name: "ds_config.json", text, deepspeed_version: state.engine || null, judging };
    const { json } = await ask<Check, unknown>("check", state.language, question);
    if (edit.text() !== text) return;
    const place = units(text);
    const apply = (finding: Finding) => {
      const edits = finding.fix?.edits ?? [];
      edit.replace(edits.map((one) => ({ start: place(one.start), end: place(one.end), text: one.text })));
    };
    edit.show(json.diagnostics.map((finding) => ({
      from: place(finding.span["start"] ?? 0), to: place(finding.span["end"] ?? 0), severity: SEVERITIES[finding.severity] ?? "info",
      message: `${finding.code} ${finding.message}`,
      actions: finding.fix ? [{ name: finding.fix.title, apply: () => apply(finding) }] : [],
    })));
    findings.replaceChildren(...list(json, app, apply, (finding) => edit.goTo(place(finding.span["start"] ?? 0))));
    findings.dataset["checked"] = String(text.length);
  });
  const update = () => run(edit.text());
  update();
  const settings = h("form", { class: "row", submit: (event) => event.preventDefault() },
    select(say("engineVersion"), app.state.engine || (catalogue.engines[0] ?? ""), catalogue.engines.map((name): [string, string] => [name, name]), (engine) => set({ engine })),
    select(say("frontEnd"), app.state.frontEnd, [["", say("guess")], ...catalogue.front_ends.map((name): [string, string] => [name, name])], (frontEnd) => set({ frontEnd })),
    number(say("world"), app.state.world, 1, 1 << 20, say("worldHint"), (world) => set({ world })));
  const element = h("div", { class: "columns wide" },
    h("section", { class: "panel" }, h("h2", {}, say("checkConfig")), settings, edit.element), findings);
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", async (event) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    const text = await file.text();
    edit.replace([{ start: 0, end: edit.text().length, text }]);
  });
  return { element, update, leave: () => edit.leave() };
}

const VERDICT = { accept: "accepted", fail: "fails", reject: "refused" } as const;

function list(json: Check, { say }: App, apply: (finding: Finding) => void, show: (finding: Finding) => void): HTMLElement[] {
  const counted = json.diagnostics.length;
  return [
    h("div", { class: "head" }, h("h2", {}, say("findings")), h("span", { class: `badge verdict-${json.verdict}` }, say(VERDICT[json.verdict]))),
    counted === 0 ? h("p", {}, say("clean")) : h("ul", { class: "findings" }, ...json.diagnostics.map((finding) =>
      h("li", { class: finding.severity, "data-code": finding.code },
        h("div", { class: "head" }, h("strong", {}, h("span", { class: "soft" }, finding.code), " ", ...marked(finding.message)),
          h("button", { type: "button", class: "small", click: () => show(finding) }, say("line", { line: finding.span["line"] ?? 1 }))),
        h("p", {}, ...marked(finding.why)), h("p", { class: "soft" }, ...marked(finding.help)),
        finding.fix && h("button", { type: "button", class: "small fix", click: () => apply(finding) }, ...marked(say("fixWith", { title: finding.fix.title })))))),
  ];
}
