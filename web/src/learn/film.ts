// One step as a film, with what a rank gathers, lets go and sends.

import type { App } from "../app";
import type { Communication, FilmWords } from "../answers";
import { h } from "../dom";
import type { Answer } from "../engine";
import { bytes } from "../format";
import { timeline } from "../timeline";

export interface Film {
  elements: HTMLElement[];
  /// Ends what runs by itself.
  stop(): void;
}

export function film({ words }: Answer<Communication, FilmWords>, app: App, capacity: number | null): Film {
  const { say } = app;
  const { play, peak, stop, elements } = timeline(words.frames, "first", app, capacity);
  return {
    stop,
    elements: [
      h("div", { class: "head" }, h("h2", {}, say("film")), play),
      h("p", { class: "soft" }, `${say("filmLead")} ${say("filmPeak", { bytes: bytes(peak) })}`),
      ...elements,
      h("pre", { class: "code wrap sent" }, words.sent.trimEnd()),
    ],
  };
}
