// The page: header, sections, and a question that lives in the address.

import type { App, Part } from "./app";
import type { Catalogue, CatalogueWords } from "./answers";
import { check } from "./check";
import { h } from "./dom";
import { ahead, ask, warm } from "./engine";
import { learn } from "./learn";
import { plan } from "./plan";
import * as questions from "./questions";
import { DEFAULTS, read, write, type Section, type State, type Theme } from "./state";
import { words, type Language } from "./words";

const preferred: Language = navigator.languages.some((name) => name.toLowerCase().startsWith("zh")) ? "zh" : "en";
const base: State = { ...DEFAULTS, language: preferred };
const root = document.getElementById("app") as HTMLElement;
const night = matchMedia("(prefers-color-scheme: dark)");

const KEEP_AFTER = 1500;

let state = read(location.hash, base);
let part: Part | undefined;
let app: App | undefined;

const isDark = () => (state.theme === "auto" ? night.matches : state.theme === "dark");

function address(): void {
  // Language always stands in a shared link: who opens it may prefer another.
  const link = write(state, { ...base, language: state.language === "en" ? "zh" : "en" });
  history.replaceState(null, "", link);
}

async function render(): Promise<void> {
  part?.leave?.();
  const say = words(state.language);
  document.documentElement.lang = state.language === "zh" ? "zh-CN" : "en";
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  document.title = `zeropilot · ${say(state.section)}`;
  const place = h("main", { id: "main", tabindex: "-1" });
  root.replaceChildren(header(), place, h("footer", {}, say("private")));
  try {
    const chosen = ask<Catalogue, CatalogueWords>("catalogue", state.language, {});
    // The first bars are worked out while the page is laid out.
    if (state.section === "plan") ahead("compare", state.language, questions.compare(state, questions.NO_PLAN_YET));
    const { json: catalogue, words: named } = await chosen;
    const set = (change: Partial<State>) => {
      state = { ...state, ...change };
      if (app) app.state = state;
      address();
      part?.update();
    };
    app = { state, say, catalogue, named, set };
    part = state.section === "check" ? check(app, isDark()) : state.section === "learn" ? learn(app) : plan(app);
    place.replaceChildren(h("h1", { class: "sr" }, say(state.section)), part.element);
  } catch (error) {
    place.replaceChildren(h("p", { class: "problem broken", role: "alert" }, say("broken", { error: String(error) })));
  }
}

function change(next: Partial<State>): void {
  state = { ...state, ...next };
  address();
  void render();
}

function header(): HTMLElement {
  const say = words(state.language);
  const sections: Section[] = ["plan", "check", "learn"];
  const themes: Theme[] = ["auto", "light", "dark"];
  const share = h("button", { type: "button", class: "small" }, say("share"));
  share.addEventListener("click", async () => {
    address();
    await navigator.clipboard.writeText(location.href);
    share.textContent = say("shared");
    setTimeout(() => { share.textContent = say("share"); }, 1500);
  });
  const theme = h("select", { "aria-label": say("theme"), class: "small" }, ...themes.map((name) => h("option", { value: name, selected: state.theme === name }, say(name))));
  theme.addEventListener("change", () => change({ theme: theme.value as Theme }));
  const other: Language = state.language === "en" ? "zh" : "en";
  return h("header", {},
    h("div", { class: "brand" }, h("img", { src: "icon.svg", alt: "", width: 28, height: 28 }), h("strong", {}, "zeropilot"), h("span", { class: "soft tagline" }, say("tagline"))),
    h("nav", { "aria-label": say("sections") }, ...sections.map((name) =>
      h("a", { href: `#${name}`, "aria-current": state.section === name ? "page" : null, click: (event) => { event.preventDefault(); change({ section: name }); } }, say(name)))),
    h("div", { class: "tools" }, share, theme,
      h("button", { type: "button", class: "small", lang: other === "zh" ? "zh-CN" : "en", click: () => change({ language: other }) }, other === "zh" ? "中文" : "English")));
}

addEventListener("hashchange", () => {
  state = read(location.hash, base);
  void render();
});
night.addEventListener("change", () => { if (state.theme === "auto") void render(); });
warm();
void render();
/// Without a network the page opens from what the browser keeps; the first answer goes before that.
setTimeout(() => { navigator.serviceWorker?.register("offline.js").catch(() => undefined); }, KEEP_AFTER);
