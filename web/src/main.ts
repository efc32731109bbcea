// The page: header, sections, and a question that lives in the address.

import type { App, Part } from "./app";
import type { Catalogue, CatalogueWords } from "./answers";
import { check } from "./check";
import { copyButton } from "./controls";
import { h } from "./dom";
import { ahead, ask, warm } from "./engine";
import { learn } from "./learn";
import { plan } from "./plan";
import * as questions from "./questions";
import * as reader from "./reader";
import { DEFAULTS, read, write, type Section, type State, type Theme } from "./state";
import { words, type Language } from "./words";

const base: State = { ...DEFAULTS, ...reader.preferred() };
const root = document.getElementById("app") as HTMLElement;
const night = matchMedia("(prefers-color-scheme: dark)");

const KEEP_AFTER = 1500;

let state = read(location.hash, base, base);
let part: Part | undefined;
let app: App | undefined;

const isDark = () => (state.theme === "auto" ? night.matches : state.theme === "dark");

/// The address follows the question; another section is another step of the browser's history.
function address(isStep = false): void {
  const link = write(state, base);
  if (isStep) history.pushState(null, "", link);
  else history.replaceState(null, "", link);
}

async function render(): Promise<void> {
  part?.leave?.();
  part = undefined;
  const say = words(state.language);
  document.documentElement.lang = state.language === "zh" ? "zh-CN" : "en";
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  document.title = `zeropilot · ${say(state.section)}`;
  const focused = document.activeElement?.id;
  const place = h("main", { id: "main", tabindex: "-1" }, skeleton());
  root.replaceChildren(header(), place, h("footer", {}, h("span", {}, say("private"))));
  if (focused) document.getElementById(focused)?.focus();
  const asked = state;
  try {
    const chosen = ask<Catalogue, CatalogueWords>("catalogue", state.language, {});
    // The first bars are worked out while the page is laid out.
    if (state.section === "plan") ahead("compare", state.language, questions.compare(state, questions.NO_PLAN_YET));
    const { json: catalogue, words: named } = await chosen;
    // Another section was opened meanwhile.
    if (asked.section !== state.section || asked.language !== state.language || !place.isConnected) return;
    const set = (change: Partial<State>) => {
      state = { ...state, ...change };
      if (app) app.state = state;
      address();
      part?.update();
    };
    app = { state, say, catalogue, named, set, go: change };
    part = state.section === "check" ? check(app, isDark()) : state.section === "learn" ? learn(app) : plan(app);
    place.replaceChildren(h("h1", { class: "sr" }, say(state.section)), part.element);
    root.querySelector("footer")?.append(...links(catalogue.version));
  } catch (error) {
    place.replaceChildren(h("p", { class: "problem broken", role: "alert" }, say("broken", { error: String(error) })));
  }
}

/// What stands there until the engine has answered.
function skeleton(): HTMLElement {
  return h("div", { class: "skeleton", "aria-hidden": "true" }, h("div", {}), h("div", {}));
}

/// The version, and where the build says that more can be read.
function links(version: string): HTMLElement[] {
  const say = words(state.language);
  const from = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content ?? "";
  const book = from("zeropilot-docs");
  const source = from("zeropilot-source");
  const page = (path: string) => `${book.replace(/\/$/, "")}/${path}`;
  const link = (address: string, text: string) => h("a", { href: address, rel: "noopener", target: "_blank" }, text);
  return [
    h("span", {}, `zeropilot ${version}`),
    ...(book ? [link(page(state.language === "zh" ? "zh/introduction.html" : "introduction.html"), say("docs")), link(page("accuracy.html"), say("measuredAccuracy"))] : []),
    ...(source ? [link(source, say("source"))] : []),
  ];
}

function change(next: Partial<State>): void {
  const isStep = next.section !== undefined && next.section !== state.section;
  state = { ...state, ...next };
  reader.keep(next);
  address(isStep);
  void render();
}

function header(): HTMLElement {
  const say = words(state.language);
  const sections: Section[] = ["plan", "check", "learn"];
  const themes: Theme[] = ["auto", "light", "dark"];
  const share = copyButton(say, () => new URL(write(state, base), location.href).href, "share", "shared");
  share.id = "share";
  const theme = h("select", { id: "theme", "aria-label": say("theme"), class: "small" }, ...themes.map((name) => h("option", { value: name, selected: state.theme === name }, say(name))));
  theme.addEventListener("change", () => change({ theme: theme.value as Theme }));
  const other: Language = state.language === "en" ? "zh" : "en";
  return h("header", {},
    h("a", { class: "skip", href: "#main", click: (event) => { event.preventDefault(); document.getElementById("main")?.focus(); } }, say("skip")),
    h("div", { class: "brand" }, h("img", { src: "icon.svg", alt: "", width: 28, height: 28 }), h("strong", {}, "zeropilot"), h("span", { class: "soft tagline" }, say("tagline"))),
    h("nav", { "aria-label": say("sections") }, ...sections.map((name) =>
      h("a", { id: `to-${name}`, href: `#${name}`, "aria-current": state.section === name ? "page" : null, click: (event) => { event.preventDefault(); change({ section: name }); } }, say(name)))),
    h("div", { class: "tools" }, share, theme,
      h("button", { type: "button", id: "language", class: "small", lang: other === "zh" ? "zh-CN" : "en", click: () => change({ language: other }) }, other === "zh" ? "中文" : "English")));
}

addEventListener("hashchange", () => {
  state = read(location.hash, base, state);
  void render();
});
night.addEventListener("change", () => { if (state.theme === "auto") void render(); });
warm();
void render();
/// Without a network the page opens from what the browser keeps; the first answer goes before that.
setTimeout(() => { navigator.serviceWorker?.register("offline.js").catch(() => undefined); }, KEEP_AFTER);
