// Fields of a form.

import { h, id } from "./dom";
import type { Say } from "./words";

export function number(label: string, value: number, least: number, most: number, hint: string, set: (value: number) => void): HTMLElement {
  const input = h("input", { id: id("field"), type: "number", min: least, max: most, placeholder: hint, inputmode: "numeric" });
  input.value = value ? String(value) : "";
  input.addEventListener("input", () => {
    const typed = input.value.trim() === "" ? 0 : Number(input.value);
    if (Number.isSafeInteger(typed) && typed <= most && (typed >= least || (typed === 0 && hint !== ""))) set(typed);
  });
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input);
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

/// Copies a text; says so for a moment.
export function copyButton(say: Say, content: () => string): HTMLButtonElement {
  const button = h("button", { type: "button", class: "small" }, say("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(content());
    button.textContent = say("copied");
    setTimeout(() => { button.textContent = say("copy"); }, 1500);
  });
  return button;
}
