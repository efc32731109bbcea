// The question of a plan.

import type { App } from "../app";
import { combobox, type Option } from "../combobox";
import { number, segments, select, slider, text } from "../controls";
import { h, id } from "../dom";
import { bytes, parameters } from "../format";
import { model } from "../questions";
import type { Word } from "../words";
import { DEFAULTS, hasCompletions, hasTeacher, rollouts, TASKS, type Method, type State } from "../state";

/// What people ask about most; the rest of the catalogue follows by name.
const USUAL = [
  "Qwen/Qwen3-0.6B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.2-1B",
  "meta-llama/Llama-3.2-3B", "meta-llama/Meta-Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-70B", "mistralai/Mistral-7B-v0.3", "google/gemma-3-1b-pt",
  "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3", "openai-community/gpt2",
];
const LENGTHS = [256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536, 98304, 131072];

export function form(app: App): HTMLElement {
  const { state, say, catalogue, set } = app;
  const rank = number(say("rank"), state.rank, 1, 65536, "", (value) => set({ rank: value }));
  rank.hidden = state.method === "full";
  const method = segments<Method>(say("method"), state.method, [["full", say("full")], ["lora", "LoRA"], ["qlora", "QLoRA"]], (value) => {
    rank.hidden = value === "full";
    set({ method: value });
  });
  const changed = (change: Parameters<App["set"]>[0]) => set(change);
  const details = h("div", { class: "task-details" });
  const showDetails = () => details.replaceChildren(...taskDetails(app));
  showDetails();
  return h("form", { class: "panel question", "aria-label": say("question"), submit: (event) => event.preventDefault() },
    marked("model", modelField({ ...app })),
    marked("card", combobox(say("card"), state.card, say("cardHint"), { options: cards(catalogue), isOwn: isMemory, more: (count) => say("moreMatches", { count }) }, (card) => changed({ card }))),
    h("div", { class: "pair" },
      number(say("count"), state.count, 1, 1024, "", (count) => changed({ count })),
      number(say("nodes"), state.nodes, 1, 4096, "", (nodes) => changed({ nodes }))),
    method, rank,
    slider(say("sequence"), state.sequence, LENGTHS, say("tokens"), (sequence) => changed({ sequence })),
    h("div", { class: "pair" },
      marked("batch", number(say("batch"), state.batch, 1, 1 << 20, say("batchHint"), (batch) => changed({ batch }))),
      marked("hostRam", text(say("hostRam"), state.hostRam, say("hostRamHint"), (hostRam) => changed({ hostRam })))),
    h("div", { class: "pair" },
      marked("goal", text(say("goal"), state.goal, say("goalHint"), (goal) => changed({ goal }))),
      marked("price", price(state.price, app))),
    h("details", { class: "more", open: hasMore(state) }, h("summary", {}, say("more")),
      h("div", { class: "pair" },
        select(say("precision"), state.precision, [["bf16", "bf16"], ["fp16", "fp16"], ["fp32", "fp32"]], (precision) => changed({ precision })),
        select(say("fusedLoss"), state.fusedLoss, [["no", say("no")], ["yes", say("yes")], ["either", say("either")]], (fusedLoss) => changed({ fusedLoss }))),
      h("div", { class: "pair" },
        select(say("objective"), state.objective, [["time", say("time")], ["cost", say("costObjective")], ["memory", say("memory")]], (objective) => changed({ objective })),
        select(say("target"), state.target, catalogue.targets.map((name): [string, string] => [name, name]), (target) => changed({ target }))),
      h("div", { class: "pair" },
        marked("task", select(say("task"), state.task, TASKS.map((name): [string, string] => [name, TASK_NAMES[name] ? say(TASK_NAMES[name]) : name.toUpperCase()]), (task) => { changed({ task }); showDetails(); })),
        marked("shares", number(say("shares"), state.shares, 1, 1024, say("letChoose"), (shares) => changed({ shares })))),
      details,
      h("div", { class: "pair" },
        marked("heldStage", select(say("heldStage"), state.heldStage, [["", say("letChoose")], ["0", "0"], ["1", "1"], ["2", "2"], ["3", "3"]], (heldStage) => changed({ heldStage }))),
        marked("heldOffload", select(say("heldOffload"), state.heldOffload, [["", say("letChoose")], ["none", say("offloadNone")], ["optimizer", say("offloadOptimizer")], ["all", say("offloadAll")]], (heldOffload) => changed({ heldOffload })))),
      h("div", { class: "pair" },
        marked("heldMicro", number(say("heldMicro"), state.heldMicro, 1, 1 << 16, say("letChoose"), (heldMicro) => changed({ heldMicro }))),
        marked("heldRecompute", select(say("heldRecompute"), state.heldRecompute, [["", say("letChoose")], ["yes", say("yes")], ["no", say("no")]], (heldRecompute) => changed({ heldRecompute }))))),
  );
}

/// Tasks whose names are no abbreviations.
const TASK_NAMES: Record<string, Word> = { reward: "taskReward", distill: "taskDistill" };
const ROLLOUT_NAMES: Record<string, Word> = { generate: "rolloutGenerate", vllm: "rolloutVllm", server: "rolloutServer", none: "rolloutNone" };

/// What a task needs to know beside its name.
function taskDetails({ state, say, catalogue, set }: App): HTMLElement[] {
  const { task } = state;
  const from = rollouts(task);
  const few = [
    from.length > 0 && marked("rollout", select(say("rollout"), from.includes(state.rollout) ? state.rollout : "", ["", ...from].map((name): [string, string] => [name, say(ROLLOUT_NAMES[name] ?? "rolloutUsual")]), (rollout) => set({ rollout }))),
    hasCompletions(task) && marked("completion", number(say("completion"), state.completion, 1, 1 << 20, say("completionHint"), (completion) => set({ completion }))),
  ].filter((field) => field !== false);
  return [
    ...(hasTeacher(task) ? [marked("teacher", combobox(say("teacher"), state.teacher, say("teacherHint"), { options: models(catalogue), more: (count) => say("moreMatches", { count }) }, (teacher) => set({ teacher })))] : []),
    ...(few.length > 0 ? [h("div", { class: "pair" }, ...few)] : []),
  ];
}

/// A field that problems can be told of.
function marked(key: keyof State, field: HTMLElement): HTMLElement {
  field.dataset["key"] = key;
  return field;
}

const hasMore = (state: State) => (["precision", "fusedLoss", "objective", "target", "task", "teacher", "rollout", "completion", "shares", "heldStage", "heldOffload", "heldMicro", "heldRecompute"] as const).some((key) => state[key] !== DEFAULTS[key]);

/// `44GB` is a GPU, too.
const isMemory = (text: string) => /^\d+(\.\d+)?\s*(g|gb|gib)$/i.test(text);

/// A price has a currency: where none is written it is that of the language.
function price(value: string, { say, state, set }: App): HTMLElement {
  const field = text(say("price"), value, say("priceHint"), (written) => {
    const sign = state.language === "zh" ? "¥" : "$";
    const price = /^[\d.]/.test(written.trim()) ? sign + written.trim() : written;
    const input = field.querySelector("input");
    if (input) input.value = price;
    set({ price });
  });
  return field;
}

function cards(catalogue: App["catalogue"]): Option[] {
  return catalogue.accelerators.map((card) => ({
    value: card.slug, label: card.name, note: card.capacity ? bytes(card.capacity) : "", ...names([card.slug, card.name, ...card.aliases]),
  }));
}

function names(all: string[]): Pick<Option, "search" | "names"> {
  const small = all.map((name) => name.toLowerCase());
  return { search: small.join(" "), names: small };
}

function models(catalogue: App["catalogue"]): Option[] {
  const place = (id: string) => (USUAL.includes(id) ? USUAL.indexOf(id) : USUAL.length);
  const sorted = [...catalogue.models].sort((a, b) => place(a.id) - place(b.id) || a.id.localeCompare(b.id, "en"));
  return sorted.map((entry) => ({
    value: entry.id, label: entry.id,
    note: entry.active ? `${parameters(entry.parameters)} · ${parameters(entry.active)}` : parameters(entry.parameters),
    ...names([entry.id, ...entry.aliases]),
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
      combobox(say("model"), state.model, say("modelHint"), { options: models(catalogue), more: (count) => say("moreMatches", { count }) }, (name) => set({ model: name })),
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
