// What the page asks, as the engine reads it and as a terminal would.

import type { Plan, Strategy } from "./answers";
import { gpus, hasCompletions, hasTeacher, rollouts, type State } from "./state";

/// What each GPU does at once: taken from the plan for everything that is shown beside it.
export interface Work {
  micro: number; accumulation: number; checkpointing: boolean; fused: boolean;
  /// GPUs that share a sequence, and what else makes room for long ones.
  shared: number; onHost: boolean; tiled: boolean;
  /// What vLLM takes of a GPU that trains, and whether it sleeps meanwhile: chosen by the plan.
  generator?: { share: number; sleeps: boolean } | undefined;
}

/// Where nothing fits.
export const NO_PLAN: Work = { micro: 1, accumulation: 1, checkpointing: true, fused: false, shared: 1, onHost: false, tiled: false };
/// Before a plan is found.
export const NO_PLAN_YET: Work = { ...NO_PLAN, checkpointing: false };

export function work(strategy: Strategy): Work {
  return {
    micro: strategy.micro_batch, accumulation: strategy.gradient_accumulation_steps,
    checkpointing: strategy.gradient_checkpointing, fused: strategy.fused_loss,
    shared: strategy.sequence_parallel, onHost: strategy.activation_offload, tiled: strategy.tiled_mlp,
  };
}

/// What the plan chose for vLLM on the GPUs that train.
export function generator({ provenance }: Plan): Work["generator"] {
  const value = (name: string) => provenance.values.find((one) => one.name === name)?.value;
  const share = value("vllm_gpu_memory_utilization");
  return typeof share === "number" ? { share, sleeps: value("vllm_sleep") === true } : undefined;
}

const ram = (state: State) => state.hostRam.trim() || null;

export function model(state: State) {
  return state.config ? { name: "config.json", config: state.config } : { name: state.model.trim() };
}

function machines(state: State) {
  return { gpus: gpus(state), host_ram: ram(state) };
}

function training(state: State) {
  return { seq_len: state.sequence, method: state.method, lora_rank: state.rank };
}

/// What is said of the task: only what it can have.
function taskDetails({ task, teacher, rollout, completion }: State) {
  return {
    teacher: hasTeacher(task) ? teacher.trim() || null : null,
    rollout: rollouts(task).includes(rollout) ? rollout : null,
    completion: hasCompletions(task) ? completion || null : null,
  };
}

function task(state: State) {
  const { teacher, rollout, completion } = taskDetails(state);
  return { task: state.task, teacher, rollout, completion_len: completion };
}

/// The task beside a plan, with what that chose.
function workedTask(state: State, { generator }: Work) {
  return { ...task(state), ...(generator && { vllm_gpu_memory_utilization: generator.share, vllm_sleep: generator.sleeps }) };
}

/// GPUs that share a sequence: as planned, or as asked where nothing is.
function shares(state: State, work: Work): number {
  return work.shared > 1 ? work.shared : state.shares || 1;
}

export function plan(state: State) {
  return {
    model: model(state),
    request: {
      machines: machines(state), global_batch: state.batch || null, precision: state.precision,
      training: {
        ...training(state), sequence_parallel: state.shares || null, micro_batch: state.heldMicro || null,
        grad_checkpointing: state.heldRecompute ? state.heldRecompute === "yes" : null,
      },
      stage: state.heldStage ? Number(state.heldStage) : null, offload: state.heldOffload || null,
      task: task(state), fused_loss: state.fusedLoss, objective: state.objective, for: state.target, bill: bill(state),
    },
  };
}

function worked(state: State, work: Work) {
  return {
    ...training(state), micro_batch: work.micro, grad_accum: work.accumulation,
    grad_checkpointing: work.checkpointing, fused_loss: work.fused,
    sequence_parallel: shares(state, work), activation_offload: work.onHost, tiled_mlp: work.tiled,
  };
}

export function compare(state: State, work: Work) {
  return {
    model: model(state),
    request: { machines: machines(state), precision: state.precision, training: worked(state, work), task: workedTask(state, work) },
  };
}

/// The job that a config was planned for; what the config leaves to the script as "auto" is said beside it.
export function job(state: State, work: Work, config: string) {
  return {
    machines: machines(state),
    config: { name: "ds_config.json", bytes: config },
    precision: state.precision,
    training: worked(state, work),
    task: workedTask(state, work),
  };
}

/// What is to be finished, if that is said.
export function bill(state: State) {
  const tokens = state.goal.trim();
  return tokens ? { tokens, cost: state.price.trim() || null } : null;
}

/// A word of a command line, quoted where a shell would read more into it.
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function line(words: (string | number | false | null)[]): string {
  return words.filter((word) => word !== false && word !== null).map((word) => quoted(String(word))).join(" ");
}

function option(name: string, value: string | number | null, usual: string | number | null): (string | number)[] {
  return value === null || value === usual ? [] : [name, value];
}

function shared(state: State): (string | number)[] {
  const { teacher, rollout, completion } = taskDetails(state);
  return [
    "--model", model(state).name, "--gpus", gpus(state), ...option("--host-ram", ram(state), null),
    ...option("--precision", state.precision, "bf16"), "--seq-len", state.sequence,
    ...option("--method", state.method, "full"), ...option("--lora-rank", state.method === "full" ? 16 : state.rank, 16),
    ...option("--task", state.task, "sft"), ...option("--teacher", teacher, null), ...option("--rollout", rollout, null),
    ...option("--completion-len", completion, null),
  ];
}

function told(state: State, work: Work): (string | number | false)[] {
  return [
    "--micro-batch", work.micro, ...option("--grad-accum", work.accumulation, 1),
    work.checkpointing && "--grad-checkpointing", work.fused && "--fused-loss",
    ...option("--sequence-parallel", shares(state, work), 1), work.onHost && "--activation-offload", work.tiled && "--tiled-mlp",
    ...(work.generator ? ["--vllm-gpu-memory-utilization", work.generator.share, `--vllm-sleep=${work.generator.sleeps}`] : []),
  ];
}

function billed(state: State): (string | number)[] {
  return [...option("--tokens", bill(state)?.tokens ?? null, null), ...option("--cost", bill(state)?.cost ?? null, null)];
}

export function planCommand(state: State): string {
  return line([
    "zeropilot", "plan", ...shared(state), ...option("--global-batch", state.batch || null, null),
    state.fusedLoss !== "no" && `--fused-loss=${state.fusedLoss}`, ...option("--objective", state.objective, "time"),
    ...option("--for", state.target, "deepspeed"), ...option("--sequence-parallel", state.shares || null, null), ...held(state), ...billed(state),
  ]);
}

function held(state: State): (string | number | false)[] {
  return [
    ...option("--stage", state.heldStage || null, null), ...option("--offload", state.heldOffload || null, null),
    ...option("--micro-batch", state.heldMicro || null, null), state.heldRecompute !== "" && `--grad-checkpointing=${state.heldRecompute === "yes"}`,
  ];
}

export function simulateCommand(state: State, work: Work): string {
  return line([
    "zeropilot", "simulate", "--config", "ds_config.json", ...shared(state), ...told(state, work), ...billed(state),
  ]);
}

export function compareCommand(state: State, work: Work): string {
  return line([
    "zeropilot", "memory", "--compare", ...shared(state), ...told(state, work),
  ]);
}
