// Keys and values as they are typed: the language server's own, and the same texts about them.

import { pickedCompletion, startCompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import type { CompletionChoice, Completions } from "../answers";

/// What the editor asks; places are UTF-16 units.
export interface Help {
  explain(path: string): Promise<HTMLElement | null>;
  complete(text: string, place: number): Promise<Completions | null>;
}

const bare = (written: string) => written.replaceAll('"', "");

export async function source(context: CompletionContext, help: Help): Promise<CompletionResult | null> {
  const { state, pos, explicit } = context;
  // A chosen value is replaced as a whole: all others are offered.
  const whole = !state.selection.main.empty;
  const found = await help.complete(state.doc.toString(), state.selection.main.to);
  if (!found || found.choices.length === 0) return null;
  const { start, end, comma, choices } = found;
  const isKey = choices[0]?.path !== null;
  const written = state.sliceDoc(start, end);
  const quote = !whole && /^["']/.test(written) ? 1 : 0;
  // A number is typed to its end, and Enter after a whole value is a new line.
  const goes = (typed: string) => /^\w*$/.test(typed) && (isKey || !/^\d/.test(typed) && !choices.some(({ label }) => bare(label) === typed));
  if (!explicit && (isKey && written === "" || !goes(state.sliceDoc(start + quote, pos)))) return null;
  const options = choices.map((choice, index): Completion => ({
    label: bare(choice.label), displayLabel: choice.label,
    ...(choice.note !== null && { detail: choice.note }),
    boost: choice.deprecated ? -99 : isKey ? 0 : -index,
    ...(choice.path !== null && { info: () => help.explain(choice.path ?? "") }),
    apply: (view, picked, from, to) => write(view, picked, choice, { from: from - quote, to: to + (end - pos), comma: comma === null ? null : from - quote - (start - comma) }),
  }));
  return { from: start + quote, options, ...(!whole && { validFor: goes }) };
}

/// Writes a choice, with the commas that are missing around it. The value of a key is chosen, to be typed over.
function write(view: EditorView, picked: Completion, choice: CompletionChoice, place: { from: number; to: number; comma: number | null }): void {
  const { head, value, tail } = choice;
  const changes = [{ from: place.from, to: place.to, insert: head + (value ?? "") + tail }];
  if (place.comma !== null) changes.unshift({ from: place.comma, to: place.comma, insert: "," });
  const begin = place.from + (place.comma === null ? 0 : 1) + head.length;
  const selection = value === "{}" ? { anchor: begin + 1 } : { anchor: begin, head: begin + (value ?? "").length };
  view.dispatch({ changes, selection, scrollIntoView: true, userEvent: "input.complete", annotations: pickedCompletion.of(picked) });
  if (choice.several || value === "{}") startCompletion(view);
}
