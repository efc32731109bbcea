// An input with suggestions, as WAI-ARIA's combobox pattern has it.

import { h, id } from "./dom";

export interface Option { value: string; label: string; note: string; search: string; names: string[] }

/// What the suggestions are beside the field.
export interface Suggestions {
  options: Option[];
  /// Whether a text means something by itself, suggested or not.
  isOwn?(text: string): boolean;
  /// What stands below the last one that is shown.
  more(count: number): string;
}

const MOST = 100;

export function combobox(
  label: string, value: string, hint: string, { options, isOwn, more }: Suggestions, choose: (value: string) => void,
): HTMLElement {
  const list = h("ul", { role: "listbox", id: id("list"), hidden: true, "aria-label": label });
  const input = h("input", {
    id: id("field"), type: "text", role: "combobox", autocomplete: "off", spellcheck: "false",
    "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list", placeholder: hint,
  });
  input.value = value;
  let chosen = value;
  let shown: Option[] = [];
  let active = -1;

  const open = (filter: string) => {
    const wanted = filter.toLowerCase().split(/[\s/_-]+/).filter(Boolean);
    const matching = options.filter((option) => wanted.every((word) => option.search.includes(word)));
    shown = matching.slice(0, MOST);
    active = -1;
    const left = matching.length - shown.length;
    list.replaceChildren(...shown.map((option, index) =>
      h("li", {
        role: "option", id: `${list.id}-${index}`, "aria-selected": "false",
        pointerdown: (event) => { event.preventDefault(); take(option.value); },
      }, h("span", {}, option.label), h("small", {}, option.note))),
    ...(left > 0 ? [h("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "soft" }, more(left))] : []));
    list.hidden = shown.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    input.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const take = (next: string) => {
    input.value = next;
    close();
    if (next === chosen) return;
    chosen = next;
    choose(next);
  };
  /// The option that is marked, what the text says by itself, or else the first suggestion.
  const meant = (): string => {
    const text = input.value.trim();
    const picked = list.hidden ? undefined : shown[active];
    if (picked) return picked.value;
    if (text === chosen) return chosen;
    const isName = options.some((option) => option.names.includes(text.toLowerCase()));
    if (text === "" || isName || isOwn?.(text)) return text || chosen;
    return (list.hidden ? undefined : shown[0]?.value) ?? text;
  };
  const move = (by: number) => {
    if (list.hidden) open("");
    if (shown.length === 0) return;
    list.children[active]?.setAttribute("aria-selected", "false");
    active = (active + by + shown.length) % shown.length;
    const item = list.children[active] as HTMLElement;
    item.setAttribute("aria-selected", "true");
    item.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", item.id);
  };
  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => open(""));
  input.addEventListener("input", () => open(input.value));
  input.addEventListener("blur", () => take(meant()));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape" && !list.hidden) close();
    else if (event.key === "Enter") take(meant());
    else return;
    event.preventDefault();
  });
  return h("div", { class: "field combobox" }, h("label", { for: input.id }, label), input, list);
}
