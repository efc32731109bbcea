// The shapes of answers, as the command line prints them with `--json`, and of the words beside them.

export interface Estimate { low: number; expected: number; high: number }
export interface Way {
  stage: number; offload_optimizer: string; offload_param: string; micro_batch: number;
  gradient_accumulation_steps: number; gradient_checkpointing: boolean; fused_loss: boolean; hpz: number;
}
export interface Fitting {
  stage: number; way: Way; config: Record<string, unknown>; memory: { device: Estimate; host: Estimate };
  step_seconds: Estimate | null; launch?: Record<string, string>;
}
export interface Plan {
  model: string; gpus: string; world_size: number; capacity: number; choice: Fitting | null; alternatives: Fitting[];
  rejected: { way: Way; over_by: number; where: string; device: Estimate }[]; ladder: Fitting[]; gpus_needed: number | null; host_ram_needed: number | null; limits: string[];
}
export interface Said { way: string; said: string }
export interface PlanWords {
  choice: { way: string; lines: string[]; config: string; by_hand: string[] } | null;
  nothing: { headline: string[]; remedy: string[] } | null;
  alternatives: Said[]; rejected: Said[]; ladder: Said[];
}
export interface Column { device: Estimate & { verdict: Verdict | null; at_peak: Record<string, number> }; host: Estimate }
export type Verdict = "fits" | "tight" | "doubtful" | "does_not_fit";
export interface Compared { capacity: number | null; ways: Column[] }
export interface RowWords { way: string; need: string; verdict: string | null; host: string }
export interface ComparedWords {
  capacity: string | null; ways: RowWords[];
}
export interface Pictured { text: string; picture: string }
export interface Timed { bill: { tokens: number; gpu_hours: Span; cost: Span | null } | null }
interface Span { low: number; expected: number; high: number }
export interface TimedWords extends Pictured { bill: string | null }
/// What a GPU holds in a stretch of a step, by part.
export interface Frame { phase: string; held: Record<string, number> }
export interface Traffic { calls: { kind: string; ranks: number; calls: number; bytes: number }[]; sent: number }
export interface FilmWords { frames: Frame[]; sent: string }
export type Moment = "after_init" | "after_backward" | "after_step";
export interface Held { name: string; words: string; bytes: number }
export interface MemoryWords extends Pictured { row: Omit<RowWords, "way">; rest: Record<Moment, Held[]> }
export interface Memory {
  stage: number; world_size: number; rank: number;
  device: Estimate & { verdict: Verdict | null; at_peak: Record<string, number> }; host: Estimate;
}
export interface ModelEntry { id: string; aliases: string[]; parameters: number; active: number | null; longest: number | null }
export interface Card {
  name: string; slug: string; aliases: string[]; capacity: number | null; gpus_per_node: number; bf16: boolean | null;
}
export interface Catalogue {
  models: ModelEntry[]; accelerators: Card[]; engines: string[]; front_ends: string[]; targets: string[]; version: string;
}
export interface Part { name: string; words: string; colour: string }
export interface CatalogueWords { parts: Part[]; concepts: { name: string; title: string }[] }
export interface Finding {
  code: string; name: string; severity: "error" | "warning" | "info" | "hint"; message: string; why: string; help: string; path: string;
  span: Record<string, number>;
  fix: { title: string; safety: string; edits: { start: number; end: number; text: string }[] } | null;
}
export interface Checked {
  verdict: string; diagnostics: Finding[]; deepspeed_version: string; front_end: { name: string; guessed: boolean };
  world_size: number; pending: { path: string; filled_from: string }[];
}
