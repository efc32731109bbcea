// Check: a config as it is typed or pasted, with what DeepSpeed and the frameworks above it would say.

import type { Diagnostic } from "@codemirror/lint";
import type { App, Part } from "../app";
import type { Check, Completions, Finding, FixWords, PastedText, PastedWords } from "../answers";
import { copyButton, downloadButton, number, select } from "../controls";
import { h, marked } from "../dom";
import { ask, newest, type Answer } from "../engine";
import { tell } from "../title";
import type { Editor } from "./editor";
import { findings, patch } from "./findings";
import { fit } from "./fit";
import { diagnosis } from "./log";

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

const SEVERITIES: Record<string, Diagnostic["severity"]> = { error: "error", warning: "warning", note: "info" };
/// A screen reader hears a result when typing has paused.
const PAUSE = 1200;

/// Texts in which keys of a config are typed; a broken one may not be recognized.
const COMPLETED: ReadonlySet<string> = new Set(["config", "empty", "other"]);

/// The engine counts bytes, an editor counts UTF-16 units.
function units(text: string): (bytes: number) => number {
  if (/^[\x00-\x7f]*$/.test(text)) return (place) => Math.min(place, text.length);
  const encoded = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  return (place) => Math.min(decoder.decode(encoded.subarray(0, place)).length, text.length);
}

type Recognized = Answer<PastedText, PastedWords>;
/// Arguments that a file beside the config says.
interface Beside { file: string; script: Record<string, unknown> }

export function check(app: App, isDark: boolean): Part {
  const { say, set, go, catalogue } = app;
  const results = h("section", { class: "panel" });
  const notice = h("div", { class: "notices" });
  const beside = h("div", {});
  const heard = h("p", { class: "sr", role: "status" });
  const fits = fit(app);
  const place = h("div", { class: "editor-place" }, h("p", { class: "soft" }, say("loadingEditor")));
  let edit: Editor | undefined;
  let said: Beside | undefined;
  /// What was cleaned or fixed last, until the text is another.
  let done: { text: string; element: HTMLElement } | undefined;
  let hearing: ReturnType<typeof setTimeout> | undefined;

  const recognized = (text: string, name?: string) =>
    ask<PastedText, PastedWords>("recognize", app.state.language, name === undefined ? { text } : { name, text });
  const hear = (text: string) => {
    clearTimeout(hearing);
    hearing = setTimeout(() => { if (heard.textContent !== text) heard.textContent = text; }, PAUSE);
  };
  const explain = async (path: string) => {
    const topic = { topic: path, deepspeed_version: app.state.engine || null };
    const answer = await ask<unknown, { markdown: string | null }>("explain", app.state.language, topic).catch(() => null);
    const said = answer?.words.markdown;
    return said ? h("div", {}, ...said.split("\n\n").map((paragraph) => h("p", {}, ...marked(paragraph)))) : null;
  };
  const complete = async (text: string, place: number) => {
    if (!COMPLETED.has(results.dataset["kind"] ?? "config")) return null;
    const offset = new TextEncoder().encode(text.slice(0, place)).length;
    const asked = { text, offset, deepspeed_version: app.state.engine || null };
    const answer = await ask<Completions, null>("complete", app.state.language, asked).catch(() => null);
    const at = units(text);
    return answer && { ...answer.json, start: at(answer.json.start), end: at(answer.json.end), comma: answer.json.comma === null ? null : at(answer.json.comma) };
  };
  const question = (text: string) => {
    const { state } = app;
    const judging = { world_size: state.world || null, front_end: state.frontEnd || null, ...(said && { script: said.script }) };
    return { name: "ds_config.json", text, deepspeed_version: state.engine || null, judging };
  };
  const undoButton = () => h("button", { type: "button", class: "small", click: () => { done = undefined; edit?.undo(); edit?.focus(); } }, say("undo"));
  const bullets = (items: string[]) => items.length > 0 && h("ul", { class: "changes" }, ...items.map((item) => h("li", {}, ...marked(item))));
  /// Puts a config into the editor and says how it came about.
  const take = (config: string, element: HTMLElement) => {
    done = { text: config, element };
    edit?.fill(config);
  };
  const accept = ({ json, words }: Recognized) => {
    if (json.config === null) return;
    if (json.front_end || json.world_size) {
      said = Object.keys(json.script).length > 0 ? { file: words.title, script: json.script } : undefined;
      set({ frontEnd: json.front_end ?? app.state.frontEnd, world: json.world_size ?? app.state.world });
      settings.replaceWith(settings = form());
    }
    take(json.config, h("div", { class: "notice good" }, h("p", {}, say("cleaned")), bullets(words.changes), undoButton()));
  };

  const showBeside = () => beside.replaceChildren(...(said ? [h("div", { class: "notice" },
    h("p", {}, say("checkedWith", { file: said.file })),
    h("p", { class: "given-arguments" }, ...Object.entries(said.script).flatMap(([name, value]) => [h("code", {}, `${name} ${String(value)}`), " "])),
    h("button", { type: "button", class: "small", click: () => { said = undefined; showBeside(); update(); } }, say("forget")))] : []));

  /// A text that is no plain config: what it is, and what can be done with it.
  const showOther = async (text: string, found: Recognized) => {
    const { json, words } = found;
    const use = json.config !== null && h("button", { type: "button", class: "primary", click: () => accept(found) }, say(json.kind === "config" ? "cleanUp" : "useConfig"));
    const toPlan = json.kind === "model_config" && h("button", { type: "button", class: "primary", click: () => go({ config: text, section: "plan" }) }, say("usePlan"));
    const named = h("div", { class: "recognized", "data-kind": json.kind }, h("h2", {}, words.title), words.next && h("p", {}, ...marked(words.next)),
      json.kind === "config" && h("p", {}, say("wouldChange")), json.kind !== "log" && bullets(words.changes), use, toPlan);
    edit?.show([]);
    fits.hide();
    if (json.kind === "log") {
      const told = await diagnosis(app, text);
      if (edit?.text() !== text) return;
      results.replaceChildren(...(told ?? [named]), ...(use ? [use] : []));
      results.dataset["kind"] = json.kind;
    } else results.replaceChildren(named);
    results.dataset["checked"] = String(text.length);
    results.dataset["kind"] = json.kind;
    tell(words.title, words.next);
    hear(words.title);
  };

  const showCheck = async (text: string) => {
    const { json } = await ask<Check, unknown>("check", app.state.language, question(text));
    if (!edit || edit.text() !== text) return;
    const at = units(text);
    const apply = (finding: Finding) => {
      edit?.replace((finding.fix?.edits ?? []).map((one) => ({ start: at(one.start), end: at(one.end), text: one.text })));
      edit?.focus();
    };
    edit.show(json.diagnostics.map((finding) => ({
      from: at(finding.span["start"] ?? 0), to: at(finding.span["end"] ?? 0), severity: SEVERITIES[finding.severity] ?? "info",
      message: `${finding.code} ${finding.message}`,
      renderMessage: () => h("span", {}, `${finding.code} `, ...marked(finding.message)),
      actions: finding.fix ? [{ name: finding.fix.title.replaceAll("`", ""), apply: () => apply(finding) }] : [],
    })));
    const fixAll = async (unsafe: boolean) => {
      const answer = await ask<Check, FixWords>("fix", app.state.language, { config: question(text), unsafe_fixes: unsafe });
      const count = answer.json.fixed?.length ?? 0;
      if (!edit || edit.text() !== text || count === 0) return;
      take(answer.words.text, h("div", { class: "notice good fixed", "data-count": count }, h("p", {}, say("fixed", { count })),
        bullets((answer.json.fixed ?? []).map((one) => `${one.code} ${one.title}`)),
        h("details", {}, h("summary", {}, say("changedLines")), patch(answer.words.diff)), undoButton()));
      edit.focus();
    };
    const list = findings(json, app, { apply, fixAll, show: (finding) => edit?.goTo(at(finding.span["start"] ?? 0)) });
    results.replaceChildren(...list.elements);
    results.dataset["checked"] = String(text.length);
    results.dataset["kind"] = "config";
    tell(`${list.verdict}: ${list.counted}`);
    hear(`${list.verdict}. ${list.counted}`);
    fits.ask(text, json.verdict !== "reject", said?.script ?? {});
  };

  const run = newest<{ text: string; pasted: boolean }>(async ({ text, pasted }) => {
    const found = await recognized(text);
    if (!edit || edit.text() !== text) return;
    notice.replaceChildren(...(done?.text === text ? [done.element] : []));
    const isPlain = found.json.kind === "config" && found.words.changes.length === 0;
    if (isPlain) return showCheck(text);
    if (pasted && found.json.certain && found.json.config !== null && found.json.config !== text) return accept(found);
    await showOther(text, found);
  });
  const update = (pasted = false) => { if (edit) run({ text: edit.text(), pasted }); };

  /// Files that were dropped together: the config among them is checked with what the others say.
  const takeFiles = async (files: File[]) => {
    const read = await Promise.all(files.map(async (file) => ({ name: file.name, text: await file.text() })));
    if (read.length === 1 && read[0]) {
      const [{ name, text }] = read as [{ name: string; text: string }];
      const found = await recognized(text, name);
      const config = found.json.certain ? found.json.config : null;
      edit?.fill(text);
      if (config !== null && config !== text) accept(found);
      return;
    }
    const known = await Promise.all(read.map(async (file) => ({ ...file, found: await recognized(file.text, file.name) })));
    const config = known.find(({ found }) => found.json.kind === "config") ?? known.find(({ found }) => found.json.config !== null);
    const framework = known.find(({ found }) => found.json.front_end !== null);
    const model = known.find(({ found }) => found.json.kind === "model_config");
    said = framework && Object.keys(framework.found.json.script).length > 0 ? { file: framework.name, script: framework.found.json.script } : undefined;
    const list = h("div", { class: "notice", "data-files": known.length }, h("ul", { class: "changes" }, ...known.map(({ name, found }) =>
      h("li", {}, h("strong", {}, name), `: ${found.words.title}. `, ...(found.json.kind === "launch_script" || found.json.kind === "training_script" || found.json.config === null && found.json.kind !== "model_config" && framework?.name !== name ? marked(found.words.next) : [])))));
    set({
      ...(framework && { frontEnd: framework.found.json.front_end ?? "", world: framework.found.json.world_size ?? app.state.world }),
      ...(model && { config: model.text }),
    });
    settings.replaceWith(settings = form());
    showBeside();
    take(config?.found.json.config ?? read[0]?.text ?? "", list);
  };

  const form = () => h("form", { class: "row", submit: (event) => event.preventDefault() },
    select(say("engineVersion"), app.state.engine || (catalogue.engines[0] ?? ""), catalogue.engines.map((name): [string, string] => [name, name]), (engine) => set({ engine })),
    select(say("frontEnd"), app.state.frontEnd, [["", say("guess")], ...catalogue.front_ends.map((name): [string, string] => [name, name])], (frontEnd) => set({ frontEnd })),
    number(say("world"), app.state.world, 1, 1 << 20, say("worldHint"), (world) => set({ world })));
  let settings = form();
  const text = () => edit?.text() ?? "";
  const element = h("div", { class: "columns wide" },
    h("section", { class: "panel" },
      h("div", { class: "head" }, h("h2", {}, say("checkConfig")), h("div", { class: "buttons" },
        h("button", { type: "button", class: "small", click: () => { said = undefined; showBeside(); edit?.fill(""); edit?.focus(); } }, say("clear")),
        copyButton(say, text), downloadButton(say, "ds_config.json", text))),
      h("p", { class: "soft hint" }, say("dropHint")), settings, beside, notice, place,
      h("p", { class: "soft hint" }, say("leaveEditor"))),
    h("div", { class: "stack" }, results, fits.element, heard));
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", (event) => {
    const files = [...event.dataTransfer?.files ?? []];
    if (files.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    void takeFiles(files);
  }, true);

  let left = false;
  void import("./editor").then(({ editor }) => {
    if (left) return;
    edit = editor(say("checkConfig"), say("leaveEditor"), say("choices"), app.state.text || EXAMPLE, isDark, (pasted) => {
      app.state.text = text();
      // The text stays in this page: only the result is asked for anew.
      update(pasted);
    }, { explain, complete });
    place.replaceChildren(edit.element);
    update();
  });
  return { element, update: () => update(), leave: () => { left = true; clearTimeout(hearing); edit?.leave(); } };
}
