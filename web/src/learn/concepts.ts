// The concepts of `zeropilot explain`, beside the pictures they are about.

import type { App } from "../app";
import type { TopicWords } from "../answers";
import { h } from "../dom";
import { ask } from "../engine";

export interface Concepts { element: HTMLElement; open(name: string): void }

const SHOWN = ["zero", "memory", "checkpointing", "offload", "buckets", "precision", "batch"];

export function concepts(app: App): Concepts {
  const { say, named } = app;
  const items = new Map(named.concepts.filter(({ name }) => SHOWN.includes(name)).toSorted((a, b) => SHOWN.indexOf(a.name) - SHOWN.indexOf(b.name)).map(({ name, title }) => {
    const text = h("pre", { class: "code wrap concept", tabindex: "0" });
    const item = h("details", { class: "more", "data-concept": name }, h("summary", {}, title), text);
    item.addEventListener("toggle", async () => {
      if (!item.open || text.textContent) return;
      const { words } = await ask<unknown, TopicWords>("explain", app.state.language, { topic: name });
      text.textContent = words.text.trimEnd();
    });
    return [name, item];
  }));
  return {
    element: h("section", { class: "panel concepts" }, h("h2", {}, say("concepts")), ...items.values()),
    open: (name) => {
      const item = items.get(name);
      if (!item) return;
      item.open = true;
      item.scrollIntoView({ behavior: "smooth", block: "nearest" });
      item.querySelector("summary")?.focus({ preventScroll: true });
    },
  };
}
