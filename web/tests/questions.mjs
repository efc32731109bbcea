// A hundred and thirty questions: models of every size and kind, cards and memory, nodes, methods, lengths, batches; some that nothing fits.

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
const USUAL = MODELS.flatMap((model, m) => MACHINES.flatMap((machines, k) => [0, 1].map((turn) => ({
  model, ...machines, ...TRAINING[(m + 2 * k + 5 * turn + m * k) % TRAINING.length],
}))));

/// What people hold: stage, offload, micro-batch and checkpointing, the task, GPUs that share a sequence, the objective, tokens with a price, precision, who reads the config.
const HELD = [
  { task: "dpo" }, { task: "orpo", sequence: 1024 }, { shares: 2 }, { shares: 4, sequence: 16384 }, { objective: "cost", sequence: 1024 },
  { goal: "10B", price: "$2.5" }, { task: "reward", method: "lora" }, { precision: "fp16", shares: 2 }, { goal: "", target: "accelerate" }, { task: "kto", sequence: 1024, batch: 64 },
  { heldStage: "2" }, { heldStage: "3", heldOffload: "optimizer", heldMicro: 2 }, { heldRecompute: "no", heldOffload: "none" }, { heldMicro: 4, heldRecompute: "yes", method: "lora" },
];
const HOLDING = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "meta-llama/Llama-3.2-1B", "meta-llama/Meta-Llama-3.1-8B", "Qwen/Qwen3-14B"];
const ON = [{ card: "A100-SXM4-80GB", count: 8 }, { card: "H100-SXM5-80GB", count: 4 }, { card: "RTX-4090", count: 8 }, { card: "L40S", count: 4 }, { card: "H200-SXM-141GB", count: 8 }];

/// Every knob with every one of five models, on machines in turn.
const KNOBS = HELD.flatMap((held, h) => HOLDING.map((model, m) => ({ model, ...ON[(h + m) % ON.length], sequence: 2048, ...held })));

/// Tasks with a teacher or with completions that are generated; a teacher has the student's vocabulary.
const QWEN = { teacher: "Qwen/Qwen3-8B", sequence: 2048 };
const OTHERS = [
  { model: "Qwen/Qwen3-0.6B", ...ON[0], sequence: 2048, task: "grpo" }, { model: "Qwen/Qwen3-8B", ...ON[4], sequence: 2048, task: "grpo", rollout: "vllm" },
  { model: "meta-llama/Llama-3.2-1B", ...ON[3], sequence: 1024, task: "grpo", rollout: "server", completion: 256 },
  { model: "Qwen/Qwen3-8B", ...ON[1], sequence: 2048, task: "grpo", method: "lora", rollout: "vllm" },
  { model: "meta-llama/Meta-Llama-3.1-8B", ...ON[0], sequence: 1024, task: "rloo", rollout: "server" },
  { model: "Qwen/Qwen3-0.6B", ...ON[2], ...QWEN, task: "distill" }, { model: "Qwen/Qwen3-0.6B", ...ON[0], ...QWEN, task: "gkd", rollout: "none" },
  { model: "Qwen/Qwen3-4B", ...ON[4], ...QWEN, task: "gkd", method: "lora" }, { model: "Qwen/Qwen3-0.6B", ...ON[1], sequence: 1024, task: "ppo" },
  { model: "meta-llama/Llama-3.2-1B", ...ON[0], sequence: 2048, task: "distill", teacher: "meta-llama/Meta-Llama-3.1-8B", completion: 1024 },
];

export const QUESTIONS = [...USUAL, ...KNOBS, ...OTHERS];

export const fragment = (question) => `#plan?${new URLSearchParams({ language: "en", ...question })}`;
