// What is wrong with a config, and what mends it.

import type { App } from "../app";
import type { Check, Finding } from "../answers";
import { h, marked } from "../dom";

const VERDICT = { accept: "accepted", fail: "fails", reject: "refused" } as const;
const SEVERITY = { error: "severityError", warning: "severityWarning", note: "severityNote" } as const;
/// A shape beside the colour.
const SIGN: Record<string, string> = { error: "✕", warning: "▲", note: "i" };

interface Actions { apply(finding: Finding): void; fixAll(unsafe: boolean): void; show(finding: Finding): void }

export function findings(json: Check, { say }: App, actions: Actions): { elements: HTMLElement[]; verdict: string; counted: string } {
  const all = json.diagnostics;
  const count = (severity: string) => all.filter((finding) => finding.severity === severity).length;
  const counted = all.length === 0 ? say("clean") : say("counted", { errors: count("error"), warnings: count("warning"), notes: count("note") });
  const verdict = say(VERDICT[json.verdict]);
  const fixable = all.filter((finding) => finding.fix);
  const safe = fixable.filter((finding) => finding.fix?.safety === "safe").length;
  const item = (finding: Finding) => {
    const severity = say(SEVERITY[finding.severity as keyof typeof SEVERITY] ?? "severityNote");
    return h("li", { class: finding.severity, "data-code": finding.code },
      h("div", { class: "head" },
        h("strong", {}, h("span", { class: `severity ${finding.severity}` }, h("span", { "aria-hidden": "true" }, `${SIGN[finding.severity] ?? "i"} `), severity), " ", h("span", { class: "soft" }, finding.code), " ", ...marked(finding.message)),
        h("button", { type: "button", class: "small", click: () => actions.show(finding) }, say("line", { line: finding.span["line"] ?? 1 }))),
      h("p", {}, ...marked(finding.why)), h("p", { class: "soft" }, ...marked(finding.help)),
      finding.fix && h("button", { type: "button", class: "small fix", click: () => actions.apply(finding) }, ...marked(say("fixWith", { title: finding.fix.title }))));
  };
  const elements = [
    h("div", { class: "head" }, h("h2", {}, say("findings")), h("span", { class: `badge verdict-${json.verdict}` }, verdict)),
    h("p", { class: all.length === 0 ? "" : "soft" }, counted),
    fixable.length > 0 && h("div", { class: "buttons fix-all" },
      safe > 0 && h("button", { type: "button", class: "primary", click: () => actions.fixAll(false) }, say("fixAll", { count: safe })),
      fixable.length > safe && h("button", { type: "button", class: safe > 0 ? "" : "primary", click: () => actions.fixAll(true) }, say("fixGuesses", { count: fixable.length }))),
    all.length > 0 && h("ul", { class: "findings" }, ...all.map(item)),
  ].filter((element) => element !== false);
  return { elements, verdict, counted };
}

/// A patch, its lines told apart by their sign and their colour.
export function patch(diff: string): HTMLElement {
  const lines = diff.split("\n").filter((line) => !line.startsWith("---") && !line.startsWith("+++"));
  return h("pre", { class: "code patch", tabindex: "0" }, ...lines.map((line) =>
    h("span", { class: line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "" }, `${line}\n`)));
}
