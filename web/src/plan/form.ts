// The question of a plan.

import type { App } from "../app";
import { combobox, type Option } from "../combobox";
import { number, segments, select, slider, text } from "../controls";
import { h, id } from "../dom";
import { bytes, parameters } from "../format";
import { model } from "../questions";
import type { Method } from "../state";

const LENGTHS = [256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536, 98304, 131072];

export function form({ state, say, catalogue, set }: App): HTMLElement {
  const rank = number(say("rank"), state.rank, 1, 65536, "", (value) => set({ rank: value }));
  rank.hidden = state.method === "full";
  const method = segments<Method>(say("method"), state.method, [["full", say("full")], ["lora", "LoRA"], ["qlora", "QLoRA"]], (value) => {
    rank.hidden = value === "full";
    set({ method: value });
  });
  const changed = (change: Parameters<App["set"]>[0]) => set(change);
  return h("form", { class: "panel question", "aria-label": say("question"), submit: (event) => event.preventDefault() },
    modelField({ state, say, catalogue, set } as App),
    combobox(say("card"), state.card, say("cardHint"), cards(catalogue), (card) => changed({ card })),
    h("div", { class: "pair" },
      number(say("count"), state.count, 1, 1024, "", (count) => changed({ count })),
      number(say("nodes"), state.nodes, 1, 4096, "", (nodes) => changed({ nodes }))),
    method, rank,
    slider(say("sequence"), state.sequence, LENGTHS, say("tokens"), (sequence) => changed({ sequence })),
    h("div", { class: "pair" },
      number(say("batch"), state.batch, 1, 1 << 20, say("batchHint"), (batch) => changed({ batch })),
      text(say("hostRam"), state.hostRam, say("hostRamHint"), (hostRam) => changed({ hostRam }))),
    h("details", { class: "more", open: state.goal !== "" }, h("summary", {}, say("more")),
      h("div", { class: "pair" },
        select(say("precision"), state.precision, [["bf16", "bf16"], ["fp16", "fp16"], ["fp32", "fp32"]], (precision) => changed({ precision })),
        select(say("fusedLoss"), state.fusedLoss, [["no", say("no")], ["yes", say("yes")], ["either", say("either")]], (fusedLoss) => changed({ fusedLoss }))),
      h("div", { class: "pair" },
        select(say("objective"), state.objective, [["time", say("time")], ["memory", say("memory")]], (objective) => changed({ objective })),
        select(say("target"), state.target, catalogue.targets.map((name): [string, string] => [name, name]), (target) => changed({ target }))),
      h("div", { class: "pair" },
        text(say("goal"), state.goal, say("goalHint"), (goal) => changed({ goal })),
        text(say("price"), state.price, say("priceHint"), (price) => changed({ price })))),
  );
}

function cards(catalogue: App["catalogue"]): Option[] {
  return catalogue.accelerators.map((card) => ({
    value: card.slug, label: card.name, note: card.capacity ? bytes(card.capacity) : "",
    search: [card.name, card.slug, ...card.aliases].join(" ").toLowerCase(),
  }));
}

function models(catalogue: App["catalogue"]): Option[] {
  return catalogue.models.map((entry) => ({
    value: entry.id, label: entry.id,
    note: entry.active ? `${parameters(entry.parameters)} · ${parameters(entry.active)}` : parameters(entry.parameters),
    search: [entry.id, ...entry.aliases].join(" ").toLowerCase(),
  }));
}

/// A name of the catalogue, or a config.json that is pasted or dropped.
function modelField(app: App): HTMLElement {
  const { state, say, catalogue, set } = app;
  const place = h("div", { class: "model" });
  const show = () => {
    place.replaceChildren(...(app.state.config ? given() : named()));
  };
  const use = (config: string) => {
    app.state = { ...app.state, config };
    set({ config });
    show();
  };
  const named = () => {
    const field = h("textarea", { id: id("field"), rows: 5, spellcheck: "false", placeholder: '{"model_type": "llama", …}' });
    field.addEventListener("change", () => { if (field.value.trim()) use(field.value.trim()); });
    return [
      combobox(say("model"), state.model, say("modelHint"), models(catalogue), (name) => set({ model: name })),
      h("details", { class: "more" }, h("summary", {}, say("pasteConfig")),
        h("div", { class: "field" }, h("label", { for: field.id }, say("configText")), field)),
    ];
  };
  const given = () => [
    h("div", { class: "field given" }, h("strong", {}, model(app.state).name), h("span", {}, say("configUsed")),
      h("button", { type: "button", class: "small", click: () => use("") }, say("configClear"))),
  ];
  place.addEventListener("dragover", (event) => { event.preventDefault(); place.classList.add("dropping"); });
  place.addEventListener("dragleave", () => place.classList.remove("dropping"));
  place.addEventListener("drop", async (event) => {
    event.preventDefault();
    place.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    const text = file ? await file.text() : event.dataTransfer?.getData("text/plain");
    if (text?.trim()) use(text.trim());
  });
  show();
  return place;
}
