// An editor in a shadow tree: there CodeMirror's styles are constructed sheets, which a strict content policy allows.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, isolateHistory, undo } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, defaultHighlightStyle, HighlightStyle, indentOnInput, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers, type Tooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { source, type Help } from "./completion";

const night = HighlightStyle.define([
  { tag: tags.propertyName, color: "#8ab4f8" }, { tag: tags.string, color: "#a5d6a7" },
  { tag: [tags.number, tags.bool, tags.null], color: "#f6c177" },
], { themeType: "dark" });

const look = EditorView.theme({
  "&": { fontSize: "13.5px", backgroundColor: "var(--code)", color: "var(--ink)", borderRadius: "8px", border: "1px solid var(--line)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", minHeight: "22rem", maxHeight: "70vh" },
  ".cm-gutters": { backgroundColor: "var(--code)", color: "var(--soft)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-content": { caretColor: "var(--ink)" }, ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", maxWidth: "34rem" },
  ".cm-tooltip-hover p": { margin: "0.5em 0.8em" }, ".cm-diagnostic": { padding: "6px 10px" },
  ".cm-tooltip.cm-completionInfo": { padding: "0 0.8em" }, ".cm-completionInfo p": { margin: "0.5em 0" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16em" }, ".cm-completionDetail": { opacity: "0.85" },
  ".cm-tooltip code": { fontFamily: "var(--mono)", fontSize: "0.92em", backgroundColor: "var(--hover)", borderRadius: "4px", padding: "0 0.25em" },
});

export interface Editor {
  element: HTMLElement;
  text(): string;
  replace(edits: { start: number; end: number; text: string }[]): void;
  /// Another text, as one step that can be undone.
  fill(text: string): void;
  undo(): void;
  focus(): void;
  show(diagnostics: Diagnostic[]): void;
  goTo(place: number): void;
  leave(): void;
}

export function editor(
  label: string, described: string, choices: string, text: string, isDark: boolean, changed: (pasted: boolean) => void, help: Help,
): Editor {
  const element = document.createElement("div");
  const root = element.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), history(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(), lintGutter(), json(), look,
        EditorView.darkTheme.of(isDark), syntaxHighlighting(isDark ? night : defaultHighlightStyle),
        EditorView.contentAttributes.of({ "aria-label": label, "aria-description": described }), EditorView.lineWrapping,
        autocompletion({ override: [(context) => source(context, help)], icons: false, defaultKeymap: false }), EditorState.phrases.of({ Completions: choices }),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.updateListener.of((update) => { if (update.docChanged) changed(update.transactions.some((one) => one.isUserEvent("input.paste"))); }),
        hoverTooltip((view, place) => about(view, place, help)),
      ],
    }),
  });
  return {
    element,
    text: () => view.state.doc.toString(),
    replace: (edits) => view.dispatch({ changes: edits.map(({ start, end, text }) => ({ from: start, to: end, insert: text })), annotations: isolateHistory.of("full") }),
    fill: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, annotations: isolateHistory.of("full") }),
    undo: () => { undo(view); },
    focus: () => view.focus(),
    show: (diagnostics) => view.dispatch(setDiagnostics(view.state, diagnostics)),
    goTo: (place) => { view.dispatch({ selection: { anchor: place }, scrollIntoView: true }); view.focus(); },
    leave: () => view.destroy(),
  };
}

/// The path of the key at a place: `zero_optimization.stage`.
function pathAt(state: EditorState, place: number): { path: string; from: number; to: number } | null {
  let node: ReturnType<ReturnType<typeof syntaxTree>["resolveInner"]> | null = syntaxTree(state).resolveInner(place, 1);
  if (node.name !== "PropertyName") return null;
  const { from, to } = node;
  const names: string[] = [];
  for (; node; node = node.parent) {
    const name = node.name === "Property" ? node.getChild("PropertyName") : null;
    if (name) names.unshift(state.sliceDoc(name.from + 1, name.to - 1));
  }
  return { path: names.join("."), from, to };
}

async function about(view: EditorView, place: number, help: Help): Promise<Tooltip | null> {
  const found = pathAt(view.state, place);
  const dom = found && await help.explain(found.path);
  return found && dom && { pos: found.from, end: found.to, above: true, create: () => ({ dom }) };
}
