// Fifty questions: models of every size and kind, cards and memory, nodes, methods, lengths, batches; some that nothing fits.

const MODELS = ["Qwen/Qwen3-8B", "meta-llama/Meta-Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "openai-community/gpt2", "meta-llama/Meta-Llama-3.1-70B"];
const MACHINES = [
  { card: "A100-SXM4-80GB", count: 8 }, { card: "44GB", count: 5 }, { card: "H100-SXM5-80GB", count: 8, nodes: 2 },
  { card: "RTX-4090", count: 4 }, { card: "24GB", count: 1 },
];
const TRAINING = [
  { sequence: 4096 }, { sequence: 2048, method: "lora", rank: 64 }, { sequence: 1024, method: "qlora" },
  { sequence: 512, precision: "fp16" }, { sequence: 8192, objective: "memory" }, { sequence: 2048, fusedLoss: "either" },
  { sequence: 2048, target: "hf-trainer" }, { sequence: 1024, batch: 320 }, { sequence: 2048, hostRam: "512GiB" }, { sequence: 256, fusedLoss: "yes" },
];

/// Every model on every kind of machine, trained in turn in every way; each twice.
export const QUESTIONS = MODELS.flatMap((model, m) => MACHINES.flatMap((machines, k) => [0, 1].map((turn) => ({
  model, ...machines, ...TRAINING[(m + 2 * k + 5 * turn + m * k) % TRAINING.length],
}))));

export const fragment = (question) => `#plan?${new URLSearchParams({ language: "en", ...question })}`;
