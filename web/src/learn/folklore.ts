// Sayings about ZeRO and what holds, with the numbers of the model that is asked about.

import type { App } from "../app";
import type { HeldWords, Memory, MemoryWords } from "../answers";
import { h } from "../dom";
import { ask } from "../engine";
import { bytes, parameters } from "../format";
import * as questions from "../questions";

/// What a rank holds after backward, when it holds the most between phases.
async function states(app: App, stage: number, ranks: number): Promise<HeldWords[]> {
  const { state } = app;
  const request = {
    machines: { gpus: String(ranks) }, stage, precision: "bf16", training: { seq_len: state.sequence, method: state.method, lora_rank: state.rank },
  };
  const { words } = await ask<Memory, MemoryWords>("memory", state.language, { model: questions.model(state), request });
  return words.rest.after_backward;
}

const sum = (held: HeldWords[] | undefined) => (held ?? []).reduce((sum, { bytes }) => sum + bytes, 0);

/// Bytes of Adam for each parameter, where all of a known number are trained.
function adam(app: App, held: HeldWords[] | undefined): string {
  const { state, catalogue, say } = app;
  const entry = state.config || state.method !== "full" ? undefined : catalogue.models.find(({ id }) => id === state.model);
  if (!entry) return "";
  const own = sum(held?.filter(({ name }) => name === "master_weights" || name === "optimizer_states"));
  return say("bytesEach", { bytes: bytes(own), count: parameters(entry.parameters), each: (own / entry.parameters).toFixed(2) });
}

const RANKS = 8;

export async function folklore(app: App): Promise<HTMLElement[]> {
  const { say } = app;
  const isChinese = app.state.language === "zh";
  const [none, ...saved] = await Promise.all([0, 1, 2, 3].map((stage) => states(app, stage, RANKS)));
  const wide = await states(app, 3, RANKS * RANKS);
  const times = (held: HeldWords[] | undefined) => `${(sum(none) / Math.max(sum(held), 1)).toFixed(1)}×`;
  const numbers = isChinese
    ? `${RANKS} 卡，反向传播之后：ZeRO-1 ${times(saved[0])}、ZeRO-2 ${times(saved[1])}、ZeRO-3 ${times(saved[2])}；${RANKS * RANKS} 卡 ZeRO-3 ${times(wide)}`
    : `after backward on ${RANKS} ranks: ZeRO-1 ${times(saved[0])}, ZeRO-2 ${times(saved[1])}, ZeRO-3 ${times(saved[2])}; ZeRO-3 on ${RANKS * RANKS} ranks ${times(wide)}`;
  const rows: [string, string, string][] = isChinese ? [
    ["ZeRO-1/2/3 分别省 4 倍、8 倍、64 倍", "这是论文里 64 卡时的极限值。省多少取决于卡数，而且只针对模型状态；ZeRO 不切分激活值。", numbers],
    ["Adam 每个参数需要 8 字节", "混合精度下需要 12 字节：两个动量各 4 字节，再加 4 字节 fp32 主权重；连同权重和梯度共 16 字节。", adam(app, none)],
    ["通信桶大小的单位是字节", "单位是元素个数。5e8 个 bf16 元素的通信桶占 0.93 GiB；开启 overlap_comm 时，stage 1、2 会分配两个通信桶。", "5e8 × 2 B = 0.93 GiB"],
    ["stage 越高越好", "micro batch 相同时，放得下的最低 stage 通常最快：ZeRO-3 每次前向和反向都要聚合权重。但更高的 stage 能腾出显存放更大的 micro batch，所以“规划”比较的是预测时间。", ""],
  ] : [
    ["ZeRO-1/2/3 save 4×, 8× and 64×", "These are the limits in the paper for 64 ranks. The saving depends on the number of ranks and applies to model states only; ZeRO does not partition activations.", numbers],
    ["Adam needs 8 bytes per parameter", "In mixed precision, Adam needs 12 bytes: two moments of 4 bytes each and an fp32 master weight of 4. With weights and gradients, the total is 16 bytes.", adam(app, none)],
    ["Bucket sizes are bytes", "The unit is elements. A bucket of 5e8 bf16 elements is 0.93 GiB. With overlap_comm, stages 1 and 2 allocate two buckets.", "5e8 × 2 B = 0.93 GiB"],
    ["A higher stage is better", "At the same micro-batch size, the lowest stage that fits is usually the fastest: ZeRO-3 gathers weights in every forward and backward pass. A higher stage leaves room for a larger micro-batch size, so Plan compares predicted times.", ""],
  ];
  return [
    h("h2", {}, say("folklore")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": say("folklore") }, h("table", { class: "folklore" },
      h("thead", {}, h("tr", {}, ...(["said", "holds", "here"] as const).map((word) => h("th", { scope: "col" }, say(word))))),
      h("tbody", {}, ...rows.map(([said, holds, here]) => h("tr", {}, h("th", { scope: "row" }, said), h("td", {}, holds), h("td", {}, here)))))),
  ];
}
