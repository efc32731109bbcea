// A log in the editor: why memory ran out, and what to change first.

import type { App } from "../app";
import type { CheckWords, LogDiagnosis } from "../answers";
import { h, marked } from "../dom";
import { ask } from "../engine";
import { bytes } from "../format";

/// `null` if the log mentions no memory that ran out.
export async function diagnosis(app: App, text: string): Promise<HTMLElement[] | null> {
  const { say } = app;
  const { json, words } = await ask<LogDiagnosis, CheckWords>("diagnose", app.state.language, { name: "train.log", text });
  if (json.cause === null) return null;
  const { numbers } = json;
  const whole = numbers?.capacity ?? 0;
  const share = numbers?.allocated && whole ? say("tensorsOf", { held: bytes(numbers.allocated), whole: bytes(whole) }) : "";
  return [
    h("div", { class: "recognized diagnosis", "data-kind": "log", "data-cause": json.cause }, h("h2", {}, json.summary),
      share && h("p", { class: "soft" }, share),
      h("h3", {}, say("changeFirst")), h("ol", { class: "changes" }, ...json.steps.map((step) => h("li", {}, ...marked(step.text)))),
      h("h3", {}, say("evidence")), h("ul", { class: "changes" }, ...json.evidence.map((line) => h("li", {}, `${say("line", { line: line.line })}: `, h("code", {}, line.text.trim())))),
      json.gaps.length > 0 && h("h3", {}, say("gaps")),
      json.gaps.length > 0 && h("ul", { class: "changes" }, ...json.gaps.map((gap) => h("li", {}, ...marked(gap.text)))),
      h("details", {}, h("summary", {}, say("fitFull")), h("pre", { class: "code wrap", tabindex: "0" }, words.text.trimEnd())),
      h("p", { class: "soft" }, ...marked(say("logTerminal")))),
  ];
}
