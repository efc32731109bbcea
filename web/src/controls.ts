// Fields of a form.

import { h, id } from "./dom";
import type { Say, Word } from "./words";

export function number(label: string, value: number, least: number, most: number, hint: string, set: (value: number) => void): HTMLElement {
  const wrong = h("p", { id: id("wrong"), class: "wrong", role: "status" });
  const input = h("input", { id: id("field"), type: "number", min: least, max: most, placeholder: hint, inputmode: "numeric", "aria-describedby": wrong.id });
  input.value = value ? String(value) : "";
  input.addEventListener("input", () => {
    const typed = input.value.trim() === "" ? 0 : Number(input.value);
    const isRight = Number.isSafeInteger(typed) && typed <= most && (typed >= least || (typed === 0 && hint !== "" && input.value.trim() === ""));
    input.setAttribute("aria-invalid", String(!isRight));
    wrong.textContent = isRight ? "" : `${least.toLocaleString("en")} – ${most.toLocaleString("en")}`;
    if (isRight) set(typed);
  });
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input, wrong);
}

export function text(label: string, value: string, hint: string, set: (value: string) => void): HTMLElement {
  const input = h("input", { id: id("field"), type: "text", placeholder: hint, spellcheck: "false", autocomplete: "off" });
  input.value = value;
  input.addEventListener("change", () => set(input.value));
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input);
}

export function select<V extends string>(label: string, value: V, options: [V, string][], set: (value: V) => void): HTMLElement {
  const field = h("select", { id: id("field") }, ...options.map(([name, words]) => h("option", { value: name, selected: name === value }, words)));
  field.addEventListener("change", () => set(field.value as V));
  return h("div", { class: "field" }, h("label", { for: field.id }, label), field);
}

/// Few choices side by side.
export function segments<V extends string>(label: string, value: V, options: [V, string][], set: (value: V) => void): HTMLElement {
  const name = id("segments");
  const each = options.map(([option, words]) =>
    h("label", {}, h("input", { type: "radio", name, value: option, checked: option === value, change: () => set(option) }), h("span", {}, words)));
  return h("fieldset", { class: "field segments" }, h("legend", {}, label), h("div", {}, ...each));
}

export function slider(label: string, value: number, stops: number[], unit: string, set: (value: number) => void): HTMLElement {
  const nearest = stops.reduce((best, stop, index) => (Math.abs(stop - value) < Math.abs((stops[best] ?? 0) - value) ? index : best), 0);
  const field = id("field");
  const shown = h("output", { for: field }, `${value.toLocaleString("en")} ${unit}`);
  const input = h("input", { id: field, type: "range", min: 0, max: stops.length - 1, step: 1, "aria-valuetext": `${value} ${unit}` });
  input.value = String(nearest);
  input.addEventListener("input", () => {
    const chosen = stops[Number(input.value)] ?? value;
    shown.textContent = `${chosen.toLocaleString("en")} ${unit}`;
    input.setAttribute("aria-valuetext", `${chosen} ${unit}`);
    set(chosen);
  });
  return h("div", { class: "field" }, h("div", { class: "label-row" }, h("label", { for: field }, label), shown), input);
}

/// Copies a text, also where a page without HTTPS has no clipboard of its own.
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "sr", "aria-hidden": "true" });
    area.value = text;
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
}

/// Copies a text; says for a moment that it did, or that the browser forbids it.
export function copyButton(say: Say, content: () => string, label: Word = "copy", done: Word = "copied"): HTMLButtonElement {
  const button = h("button", { type: "button", class: "small" }, say(label));
  button.addEventListener("click", async () => {
    button.textContent = say(await copied(content()) ? done : "notCopied");
    setTimeout(() => { button.textContent = say(label); }, 2500);
  });
  return button;
}

/// Hands a text over as a file.
export function downloadButton(say: Say, name: string, content: () => string): HTMLButtonElement {
  const save = () => {
    const address = URL.createObjectURL(new Blob([content()], { type: "application/json" }));
    h("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  return h("button", { type: "button", class: "small", click: save }, say("download"));
}
