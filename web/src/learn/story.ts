// ZeRO in seven steps, for a screen that a room looks at. Every number is the engine's, for the model that is chosen.

import type { App } from "../app";
import type { RestWords } from "../answers";
import { h, marked } from "../dom";
import type { State } from "../state";

/// What a step shows, what it says, and the concept that says more.
interface Step { change: Partial<State>; moment: keyof RestWords; concept: string; title: [string, string]; text: [string, string] }

const PLAIN = { recompute: "no", offload: "none" } as const;

/// `{0}` to `{3}` are bytes per rank after backward at that stage, `{peak}` is the fullest moment of what is shown, `{shown}` what is held, `{n}` the ranks.
const STEPS: Step[] = [
  {
    change: { ...PLAIN, stage: 0 }, moment: "after_init", concept: "memory",
    title: ["Training stores more than the weights", "训练时存的不只是权重"],
    text: ["In addition to the 16-bit weights, mixed precision with Adam keeps fp32 master weights and two moments for every trained parameter. Each rank stores {shown} before the first batch.", "除了 16 位权重，混合精度加 Adam 还要为每个可训练参数保存 fp32 主权重和两个动量。处理第一个 batch 之前，每个 rank 就已占用 {shown}。"],
  },
  {
    change: { ...PLAIN, stage: 0 }, moment: "after_backward", concept: "zero",
    title: ["Without ZeRO, every rank stores a full copy", "不用 ZeRO，每个 rank 都存完整的一份"],
    text: ["{n} ranks store {n} copies of the same {0}. More GPUs make training faster, but a model that did not fit before still does not fit.", "{n} 个 rank 把同样的 {0} 保存了 {n} 份。增加卡数能提速，但原来放不下的模型还是放不下。"],
  },
  {
    change: { ...PLAIN, stage: 1 }, moment: "after_backward", concept: "zero",
    title: ["ZeRO-1 partitions the optimizer states", "ZeRO-1 切分优化器状态"],
    text: ["Each rank updates only its shard of the parameters, so it keeps master weights and moments only for that shard: {0} becomes {1}.", "每个 rank 只更新自己的参数分片，因此只保存这个分片的主权重和动量：占用从 {0} 降到 {1}。"],
  },
  {
    change: { ...PLAIN, stage: 2 }, moment: "after_backward", concept: "zero",
    title: ["ZeRO-2 also partitions the gradients", "ZeRO-2 再切分梯度"],
    text: ["After the backward pass, ZeRO-1 and ZeRO-2 store the same amount, {1} and {2}. Both keep only their shard of the averaged gradients. They differ **during** the backward pass: ZeRO-1 keeps all gradients until the end, and ZeRO-2 frees each bucket after reducing it. If memory peaks at the loss, before any gradient exists, both have the same peak.", "反向传播结束后，ZeRO-1 和 ZeRO-2 占用相同（{1} 与 {2}），因为两者都只保留规约后梯度中属于自己的分片。差别在反向**过程中**：ZeRO-1 把全部梯度留到反向结束，ZeRO-2 每规约完一个通信桶就释放。如果显存峰值出现在计算 loss 时（还没有梯度），两者的峰值就相同。"],
  },
  {
    change: { ...PLAIN, stage: 3 }, moment: "after_backward", concept: "zero",
    title: ["ZeRO-3 partitions the weights too", "ZeRO-3 连权重也切分"],
    text: ["Each rank keeps {3}. Before a layer runs, the ranks all-gather its weights; after the layer, they free them. The animation below shows the gathered weights. The cost is communication in every forward and backward pass.", "每个 rank 只存 {3}。某一层运行之前，各 rank 用 all-gather 聚合它的权重，用完立即释放。下面的动画会显示聚合的权重。代价是每次前向和反向都要通信。"],
  },
  {
    change: { stage: 3, recompute: "yes", offload: "none" }, moment: "after_backward", concept: "checkpointing",
    title: ["ZeRO does not partition activations", "ZeRO 不切分激活值"],
    text: ["Activations grow with the micro-batch size and the sequence length in every stage. Gradient checkpointing keeps one tensor per layer and recomputes the rest in the backward pass. The peak of the step is now {peak}.", "激活值随 micro batch 和序列长度增长，与 stage 无关。梯度检查点每层只保留一个张量，其余在反向时重算。现在一步之内的峰值是 {peak}。"],
  },
  {
    change: { stage: 3, recompute: "yes", offload: "optimizer" }, moment: "after_backward", concept: "offload",
    title: ["Offload moves states to host memory", "卸载把优化器状态放到主机内存"],
    text: ["With CPU offload, master weights and moments are in host memory, and each rank keeps {shown} on its GPU. Updates run on the CPU and wait for copies over PCIe. Use offload when nothing else fits.", "用 CPU 卸载时，主权重和动量放在主机内存，每个 rank 的 GPU 上只剩 {shown}。更新在 CPU 上进行，还要等待 PCIe 拷贝。其他方案都放不下时再用卸载。"],
  },
];

export interface Story { element: HTMLElement; tell(values: Record<string, string>): void }

export function story(app: App, go: (change: Partial<State>, moment: keyof RestWords) => void, explain: (concept: string) => void): Story {
  const { say, state } = app;
  const side = state.language === "en" ? 0 : 1;
  let place = -1;
  let values: Record<string, string> = {};
  const title = h("h3", { class: "story-title" });
  const text = h("p", { class: "story-text" });
  const count = h("span", { class: "soft number" });
  const fill = (words: string) => words.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "…");
  const show = () => {
    const step = STEPS[place];
    title.textContent = step ? `${place + 1}. ${step.title[side]}` : say("storyTitle");
    text.replaceChildren(...marked(step ? fill(step.text[side]) : say("storyLead")));
    count.textContent = step ? `${place + 1} / ${STEPS.length}` : "";
    back.disabled = place <= 0;
    next.textContent = place < 0 ? say("storyStart") : say("next");
    next.disabled = place === STEPS.length - 1;
    more.hidden = !step;
    element.dataset["step"] = String(place + 1);
  };
  const move = (by: number) => {
    place = Math.min(Math.max(place + by, 0), STEPS.length - 1);
    const step = STEPS[place];
    show();
    if (step) go(step.change, step.moment);
  };
  const back = h("button", { type: "button", click: () => move(-1) }, say("back"));
  const next = h("button", { type: "button", class: "primary", click: () => move(1) }, say("storyStart"));
  const more = h("button", { type: "button", click: () => explain(STEPS[place]?.concept ?? "zero") }, say("moreAbout"));
  const screen = h("button", { type: "button", click: () => { void (document.fullscreenElement ? document.exitFullscreen() : element.closest(".lesson")?.requestFullscreen()); } }, say("fullScreen"));
  const element = h("div", { class: "story" }, h("div", { "aria-live": "polite" }, title, text), h("div", { class: "buttons" }, back, next, count, more, screen));
  show();
  return { element, tell: (known) => { values = known; show(); } };
}
