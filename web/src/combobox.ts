// An input with suggestions, as WAI-ARIA's combobox pattern has it.

import { h, id } from "./dom";

export interface Option { value: string; label: string; note: string; search: string }

const MOST = 60;

export function combobox(
  label: string, value: string, hint: string, options: Option[], choose: (value: string) => void,
): HTMLElement {
  const list = h("ul", { role: "listbox", id: id("list"), hidden: true, "aria-label": label });
  const input = h("input", {
    id: id("field"), type: "text", role: "combobox", autocomplete: "off", spellcheck: "false",
    "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list", placeholder: hint,
  });
  input.value = value;
  let shown: Option[] = [];
  let active = -1;

  const open = (filter: string) => {
    const wanted = filter.toLowerCase().split(/[\s/_-]+/).filter(Boolean);
    shown = options.filter((option) => wanted.every((word) => option.search.includes(word))).slice(0, MOST);
    active = -1;
    list.replaceChildren(...shown.map((option, index) =>
      h("li", {
        role: "option", id: `${list.id}-${index}`, "aria-selected": "false",
        pointerdown: (event) => { event.preventDefault(); take(option.value); },
      }, h("span", {}, option.label), h("small", {}, option.note))));
    list.hidden = shown.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    input.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const take = (chosen: string) => {
    input.value = chosen;
    close();
    choose(chosen);
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
  input.addEventListener("blur", () => {
    close();
    if (input.value.trim() && input.value !== value) choose(input.value.trim());
  });
  input.addEventListener("keydown", (event) => {
    const picked = shown[active];
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape" && !list.hidden) close();
    else if (event.key === "Enter") take(picked && !list.hidden ? picked.value : input.value.trim());
    else return;
    event.preventDefault();
  });
  return h("div", { class: "field combobox" }, h("label", { for: input.id }, label), input, list);
}
