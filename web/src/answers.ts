// Answers as JSON has them, and words beside them. Generated from the program's types:
// ZEROPILOT_UPDATE_DOCS=1 cargo test -p zeropilot --test docs

/// Whether DeepSpeed accepts a config, and everything found in it.
export interface Check {
  file: string;
  verdict: RunVerdict;
  resolved: ResolvedBatch | null;
  diagnostics: Finding[];
  fixed?: Fixed[];
  in_baseline?: number;
  deepspeed_version: string;
  front_end: FrontEndName;
  world_size: number;
  world_size_source: string;
  pending: Pending[];
}

/// `reject`: the config does not load. `fail`: it loads, and an error says that the run does not start or ends at once.
export type RunVerdict = "accept" | "fail" | "reject";

/// The batch and the ZeRO section after loading.
export interface ResolvedBatch {
  train_batch_size: number | null;
  train_micro_batch_size_per_gpu: number | null;
  gradient_accumulation_steps: number | null;
  zero_optimization: Record<string, unknown>;
}

/// A finding with its reason and its remedy.
export interface Finding {
  code: string;
  name: string;
  severity: string;
  message: string;
  why: string;
  help: string;
  path: string;
  span: Span;
  related: Related[];
  fix: Fix | null;
}

/// A place in a text: bytes, and lines and columns from 1. The end is exclusive.
export interface Span {
  start: number;
  end: number;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
}

/// Another place that belongs to a finding.
export interface Related {
  span: Span;
  message: string;
}

/// How a finding can be fixed.
export interface Fix {
  title: string;
  safety: string;
  edits: Edit[];
}

/// A replacement of bytes.
export interface Edit {
  start: number;
  end: number;
  text: string;
}

/// A finding that a fix removed; its place refers to the text before the fix.
export interface Fixed {
  code: string;
  message: string;
  path: string;
  title: string;
  safety: string;
}

/// What reads the config.
export interface FrontEndName {
  name: string;
  guessed: boolean;
}

/// A key that gets its value only when the script runs.
export interface Pending {
  path: string;
  filled_from: string;
}

/// A config after DeepSpeed has loaded it, without values that only the script sets.
export interface Resolved {
  shape: number;
  deepspeed_version: string;
  front_end: string;
  world_size: number;
  world_size_source: string;
  stage: number;
  precision: string;
  train_batch_size: number | null;
  train_micro_batch_size_per_gpu: number | null;
  gradient_accumulation_steps: number | null;
  gradient_clipping: number | null;
  zero_optimization: Record<string, unknown>;
  pending: Pending[];
}

/// How much memory a job needs.
export interface Memory {
  shape: number;
  model: string;
  engine: string;
  stage: number;
  micro_batch: number;
  sequence_length: number;
  precision: string;
  precision_assumed: boolean;
  gradient_checkpointing: boolean;
  world_size: number;
  nodes: number;
  gpus_per_node: number;
  rank: number;
  task: string;
  parameters: Parameters;
  models: OtherModel[];
  critic: TrainedBeside | null;
  rollout: Rollout | null;
  images: ImagesSeen | null;
  activations: Activations;
  tensors: Tensors;
  device: DeviceMemory;
  host: HostMemory;
  savings: Saving[];
  provenance: Provenance;
}

/// Parameters of the model, and of each of its parts.
export interface Parameters {
  total: number;
  trainable: number;
  parts: PartSize[];
  quantized: QuantizedSize | null;
}

/// Parameters of a part: `vision`, `audio`, `projector` or `language`.
export interface PartSize {
  part: string;
  total: number;
  trainable: number;
}

/// Parameters of a quantized base model, and the bytes of all of them with their scales.
export interface QuantizedSize {
  format: string;
  total: number;
  bytes: number;
}

/// A frozen model: `reference`, `teacher` or `reward`, with the bytes of its weights between phases.
export interface OtherModel {
  role: string;
  parameters: number;
  device: number;
  host: number;
}

/// The value model of PPO, which is trained in the same engine as the policy.
export interface TrainedBeside {
  parameters: number;
}

/// A vLLM engine on the training GPUs: bytes of each GPU during generation and during training, and the parts of its share. From the source code of vLLM, not measured.
export interface Rollout {
  generating: number;
  training: Estimate;
  weights: number;
  cache: number;
  cached_tokens: number | null;
  sleeps: boolean;
}

/// Bytes with their bounds.
export interface Estimate {
  low: number;
  expected: number;
  high: number;
}

/// The images of a sequence, and their number of tokens.
export interface ImagesSeen {
  per_sequence: number;
  width: number;
  height: number;
  tokens: number;
}

/// Source of the activations: the model's `own` program, or a `stand_in`.
export interface Activations {
  program: string;
  of: string | null;
  error: ActivationError | null;
}

/// Error of a stand-in's activations for recorded models of its class: 0.1 means 10% too high.
export interface ActivationError {
  low: number;
  high: number;
}

/// The exact tensors of the rank.
export interface Tensors {
  after_init: State;
  after_backward: State;
  after_step: State;
  peak: Peaks;
}

/// Tensors between phases, by place and category.
export interface State {
  device: Record<string, number>;
  pinned: Record<string, number>;
  host: Record<string, number>;
  total: number;
  misc: number;
}

/// The peak of each phase.
export interface Peaks {
  init: number;
  forward: number;
  backward: number;
  step: number;
}

/// Memory that a GPU needs.
export interface DeviceMemory {
  low: number;
  expected: number;
  high: number;
  allocated: Estimate;
  reserved: Estimate;
  calibration: Calibration;
  capacity: number | null;
  verdict: Verdict | null;
  at_peak: Record<string, number>;
  terms: MemoryTerm[];
  peak: DevicePeak;
}

/// Published runs that determine the bounds `low` and `high`, and how many of them are inside and below.
export interface Calibration {
  runs: number;
  sources: number;
  inside: number;
  below: number;
  own_runs: OwnBounds | null;
}

/// The user's own runs on this device, one per job. If `decide` is true, the bounds come from these runs alone; otherwise, the bounds are wide enough to include them.
export interface OwnBounds {
  runs: number;
  decide: boolean;
}

/// How a need compares with what there is.
export type Verdict = "fits" | "low_headroom" | "may_not_fit" | "does_not_fit";

/// GPU memory outside tensors.
export interface MemoryTerm {
  term: string;
  bytes: Estimate;
}

/// When GPU memory peaks.
export interface DevicePeak {
  phase: string;
  near: string | null;
  init: number;
  forward: number;
  backward: number;
  step: number;
  others: Record<string, number>;
}

/// Memory that a host needs for all its processes.
export interface HostMemory {
  per_process: Estimate;
  low: number;
  expected: number;
  high: number;
  processes: number;
  capacity: number | null;
  verdict: Verdict | null;
  disk: number;
}

/// A change, and the bytes it saves on the GPU.
export interface Saving {
  change: string;
  saved: number;
}

/// Values and assumptions behind an answer.
export interface Provenance {
  framework: string | null;
  values: StatedValue[];
  unknown: string[];
  not_modelled: NotModelled[];
  notes: string[];
}

/// A value that an answer uses.
export interface StatedValue {
  name: string;
  value: unknown;
  origin: Origin;
}

/// Where a value comes from: an `option`, a `file` with its line, a framework's `default`, what is `installed`, or `assumed`.
export interface Origin {
  kind: string;
  file?: string | null;
  line?: number | null;
  of?: string | null;
}

/// A setting of the job that zeropilot does not model; the run needs `less`, `more` or `less_or_more`.
export interface NotModelled {
  what: string;
  written: string;
  run_needs: string;
  origin: Origin;
}

/// All stages and offloads side by side.
export interface Comparison {
  capacity: number | null;
  strategies: ComparedStrategy[];
}

/// A stage with its offload and the memory that it needs.
export interface ComparedStrategy {
  stage: number;
  offload_optimizer: boolean;
  offload_param: boolean;
  device: ComparedDevice;
  host: Estimate;
  verdict: Verdict | null;
}

/// Memory that a strategy needs on a GPU, and its parts at the peak.
export interface ComparedDevice {
  at_peak: Record<string, number>;
  low: number;
  expected: number;
  high: number;
  verdict: Verdict | null;
}

/// The recommended strategy, alternatives that fit, strategies that do not fit, and the fallbacks if the run still runs out of memory.
export interface Plan {
  shape: number;
  model: string;
  task: string;
  gpus: string;
  world_size: number;
  capacity: number;
  strategies: number;
  predicted: number;
  longest: LongestSequence | null;
  recommended: Recommended | null;
  cost_estimate: CostEstimate | null;
  by_gpu_count: OnGpus[] | null;
  alternatives: FittingStrategy[];
  rejected: RejectedStrategy[];
  fallbacks: FittingStrategy[];
  gpus_needed: number | null;
  host_ram_needed: number | null;
  limits: string[];
  current: CurrentJob | null;
  provenance: Provenance;
}

/// The longest sequence, if requested: `seq_len` tokens fit even at their upper bound, `expected` tokens are expected to fit.
export interface LongestSequence {
  seq_len: number;
  expected: number;
  by_changes: LongestWith[];
}

/// The longest sequence with some changes to the script; `limit` is `memory`, `kernels` or `asked`.
export interface LongestWith {
  seq_len: number;
  fused_loss: boolean;
  sequence_parallel: number;
  activation_offload: boolean;
  tiled_mlp: boolean;
  limit: string;
}

/// The strategy to run, with commands that start it, by launcher.
export interface Recommended {
  strategy: Strategy;
  config: Record<string, unknown>;
  memory: PlannedMemory;
  step_seconds: Range | null;
  launch: Record<string, string>;
}

/// Stage, offload (`cpu` or `nvme`) and batch. `sequence_parallel` GPUs share each sequence.
export interface Strategy {
  stage: number;
  offload_optimizer: Offload;
  offload_param: Offload;
  micro_batch: number;
  gradient_accumulation_steps: number;
  gradient_checkpointing: boolean;
  fused_loss: boolean;
  sequence_parallel: number;
  activation_offload: boolean;
  tiled_mlp: boolean;
  hpz: number;
}

/// Where states that leave the GPU are kept.
export type Offload = "none" | "cpu" | "nvme";

/// Memory that a strategy needs on a GPU and on a host.
export interface PlannedMemory {
  device: Estimate;
  host: Estimate;
}

/// Seconds, hours or money with their bounds.
export interface Range {
  low: number;
  expected: number;
  high: number;
}

/// Cost of the whole training: GPU hours, and money if a price was given.
export interface CostEstimate {
  tokens: number;
  gpu_hours: number | null;
  cost: number | null;
}

/// The best strategy on some of the GPUs, and its cost; no strategy if none fits.
export interface OnGpus {
  nodes: number;
  gpus_per_node: number;
  strategy: Strategy | null;
  cost_estimate: CostEstimate | null;
}

/// A strategy that fits, with its DeepSpeed config; the time of a step only if the speed of the GPUs is known.
export interface FittingStrategy {
  strategy: Strategy;
  config: Record<string, unknown>;
  memory: PlannedMemory;
  step_seconds: Range | null;
}

/// A strategy whose upper bound does not fit even with the smallest settings, and the bytes that are missing.
export interface RejectedStrategy {
  strategy: Strategy;
  over_by: number;
  where: string;
  device: Estimate;
  verdict: Verdict;
  fullest: string;
  other_models: number;
  rollout_engine: number;
}

/// The job as it is written.
export interface CurrentJob {
  stage: number;
  micro_batch: number;
  gradient_accumulation_steps: number;
  device: number;
  verdict: Verdict | null;
  step_seconds: Range;
}

/// Time of a step, its waits and its communication volume.
export interface Simulation {
  shape: number;
  model: string;
  engine: string;
  stage: number;
  micro_batch: number;
  gradient_accumulation_steps: number;
  sequence_length: number;
  gradient_checkpointing: boolean;
  world_size: number;
  nodes: number;
  gpus_per_node: number;
  network: NodeNetwork | null;
  step: StepSeconds;
  verdict: Verdict | null;
  process_bytes: number | null;
  tokens_per_s: number;
  tokens_per_s_per_gpu: number;
  tflops_per_gpu: number;
  mfu: number;
  hfu: number;
  busy: Record<string, number>;
  waits: Record<string, number>;
  communication: Communication;
  cost_estimate: CostRange | null;
  scaling: Scaling[];
  provenance: Provenance;
}

/// The network between the nodes; `stated` if it was given, not assumed.
export interface NodeNetwork {
  name: string;
  gb_s: number;
  stated: boolean;
}

/// Seconds of a step with their bounds, and the expected seconds of each phase.
export interface StepSeconds {
  low: number;
  expected: number;
  high: number;
  forward: number;
  backward: number;
  optimizer: number;
  own_runs: OwnBounds | null;
}

/// Communication volume of a step.
export interface Communication {
  calls: CallTotal[];
  sent: number;
  to_device: number;
  to_host: number;
}

/// Calls of one kind among this many ranks.
export interface CallTotal {
  kind: string;
  ranks: number;
  calls: number;
  bytes: number;
}

/// Cost of the whole training, with bounds: GPU hours, and money if a price was given.
export interface CostRange {
  tokens: number;
  gpu_hours: Range;
  cost: Range | null;
}

/// The same job on another number of GPUs.
export interface Scaling {
  gpus: number;
  gradient_accumulation_steps: number;
  step: number;
  tokens_per_s: number;
  tokens_per_s_per_gpu: number;
  mfu: number;
  efficiency: number | null;
}

/// A DeepSpeed config with its explanations.
export interface Created {
  path: string | null;
  tier: string | null;
  target: string;
  front_end: string;
  stage: number;
  precision: string;
  batch: Batch;
  arguments: Record<string, unknown>;
  sized: SizedKey[];
  config: Record<string, unknown>;
}

/// Micro-batch size × gradient accumulation steps × ranks.
export interface Batch {
  micro_batch: number;
  gradient_accumulation_steps: number;
  world_size: number | null;
  global_batch: number | null;
}

/// A key that was sized for the model.
export interface SizedKey {
  key: string;
  elements: number;
}

/// Why a config cannot be written.
export interface Refusals {
  errors: Objection[];
}

/// Something that contradicts the request.
export interface Objection {
  message: string;
  why: string;
  help: string;
}

/// Keys and concepts that `explain` describes.
export interface Index {
  concepts: ConceptName[];
  keys: string[];
}

/// A concept that `explain` describes.
export interface ConceptName {
  name: string;
  title: string;
}

/// A key with its effect, its cost and common mistakes; `within` if the text describes the section that contains the key.
export interface Key {
  path: string;
  within: string | null;
  what: string | null;
  unit: string | null;
  is_read: boolean | null;
  needs: Need[];
  unmeasured: string[];
  memory: string | null;
  speed: string | null;
  mistake: string | null;
  source: string[];
  versions: InVersion[];
}

/// A key and the values that give the described key an effect.
export interface Need {
  key: string;
  values: unknown[];
}

/// A key in one DeepSpeed version.
export interface InVersion {
  version: string;
  status: string;
  default: unknown;
  replaced_by: string | null;
}

/// A name that several keys share.
export interface Names {
  keys: string[];
}

/// A concept.
export interface Concept {
  name: string;
  title: string;
  text: string;
  keys: string[];
}

/// A whole config, key by key; `findings` are the findings that do not belong to a key.
export interface ExplainedFile {
  job?: Provenance | null;
  file: string;
  verdict: RunVerdict;
  deepspeed_version: string;
  front_end: string;
  world_size: number;
  keys: FileKey[];
  findings: FileFinding[];
}

/// A key as a config has it.
export interface FileKey {
  path: string;
  span: Span;
  status: string;
  written: string;
  value: unknown;
  filled_from: string | null;
  what: string | null;
  memory: string | null;
  speed: string | null;
  findings: FileFinding[];
}

/// A finding in short.
export interface FileFinding {
  code: string;
  severity: string;
  message: string;
  help: string;
}

/// Differences between two configs.
export interface Difference {
  files: string[];
  changes: Change[];
}

/// A key that differs.
export interface Change {
  path: string;
  left: KeySide;
  right: KeySide;
  what: string | null;
  memory: string | null;
  speed: string | null;
}

/// A key in one of two configs.
export interface KeySide {
  status: string;
  value: unknown;
}

/// Cost of configs in a step.
export interface Costs {
  model: string;
  files: FileCost[];
}

/// Bytes on the GPU with the highest use, on a host, sent by each GPU, and between GPU and host; seconds if the speed of the GPUs is known.
export interface FileCost {
  file: string;
  device: number;
  host: number;
  sent: number;
  to_device: number;
  to_host: number;
  seconds: number | null;
  sequences: number;
}

/// A page of the rule book.
export interface RulePage {
  code: string;
  name: string;
  group: string;
  severity: string;
  summary: string;
  explanations: RuleWords[];
  fix: string[];
  versions: string[];
  front_ends: string[];
  sources: string[];
  bad: BadExample[];
  good: GoodExample[];
}

/// One way the rule words itself.
export interface RuleWords {
  severity: string;
  message: string;
  why: string;
  help: string;
  fix: RuleFix | null;
}

/// What a fix does, and whether it is safe.
export interface RuleFix {
  title: string;
  safety: string;
}

/// A config in which the rule finds something.
export interface BadExample {
  config: string;
  front_end: string;
  world_size: number | null;
  deepspeed_version: string | null;
  files?: ExampleFile[];
  findings: RuleWords[];
}

/// A file that a launch script names.
export interface ExampleFile {
  name: string;
  text: string;
}

/// A config, and what it is judged for.
export interface GoodExample {
  config: string;
  front_end: string;
  world_size: number | null;
  deepspeed_version: string | null;
  files?: ExampleFile[];
}

/// A model of the catalogue: parameters in all, those that a token meets, and the longest sequence.
export interface CatalogueModel {
  id: string;
  aliases: string[];
  parameters: number;
  active: number | null;
  longest: number | null;
}

/// A GPU of the catalogue.
export interface CatalogueGpu {
  name: string;
  slug: string;
  aliases: string[];
  capacity: number | null;
  gpus_per_node: number;
  bf16: boolean | null;
}

/// A rule in a line.
export interface RuleLine {
  code: string;
  name: string;
  group: string;
  severity: string;
  summary: string;
}

/// An advisory: a known defect of some versions.
export interface AdvisoryEntry {
  id: string;
  title: string;
  kind: string;
  what: string;
  workaround: string;
  affects: AffectedVersions[];
  when: string[];
  evidence: string[];
  rule: string | null;
  reproduced: ReproducedOn | null;
}

/// Versions of a package: from the first one with the defect to before the one with the fix.
export interface AffectedVersions {
  package: string;
  from: string | null;
  fixed: string | null;
}

/// Engines on which a test shows the defect and its end.
export interface ReproducedOn {
  affected: string;
  fixed: string;
}

/// What is there, and what is missing.
export interface Diagnosis {
  machine: MachineFacts;
  findings: MachineFinding[];
}

/// What is there; `memlock` and `open_files` are numbers, `unlimited` or unknown.
export interface MachineFacts {
  python: string | null;
  packages: Record<string, string | null>;
  gpus: MachineGpu[] | null;
  cuda_visible_devices: string | null;
  ram: number | null;
  memlock: unknown;
  open_files: unknown;
  shm: number | null;
  tools: BuildTools;
}

/// A GPU of this machine.
export interface MachineGpu {
  name: string;
  uuid: string;
  memory: number;
}

/// Whether tools that compile DeepSpeed's operators are there.
export interface BuildTools {
  cxx: boolean;
  nvcc: boolean;
  ninja: boolean;
  libaio: boolean;
}

/// Something missing, with its reason, its remedy and a command.
export interface MachineFinding {
  name: string;
  severity: string;
  message: string;
  why: string;
  help: string;
  command: string | null;
}

/// Why a run ran out of memory; `cause` is null if the log has no out-of-memory message.
export interface LogDiagnosis {
  shape: number;
  log: string;
  cause: OomCause | null;
  certainty: OomCertainty | null;
  memory: OomMemory | null;
  phase: OomPhase | null;
  object: OomObject | null;
  summary: string;
  rank: number | null;
  ranks: number[];
  messages: number;
  numbers: ShortageNumbers | null;
  evidence: EvidenceLine[];
  steps: ChangeFirst[];
  gaps: UnknownFact[];
  prediction: ShortagePrediction | null;
}

/// Why memory ran out.
export type OomCause = "model_states" | "activations" | "logits" | "fragmentation" | "other_process" | "evaluation" | "saving" | "generation" | "large_request" | "host_memory" | "library_memory" | "unknown";

/// How sure a cause is.
export type OomCertainty = "shown" | "likely" | "unknown";

/// Which memory ran out.
export type OomMemory = "device" | "host";

/// What the program was doing.
export type OomPhase = "forward" | "backward" | "step" | "loading" | "initialize" | "evaluation" | "generation" | "saving";

/// What was being allocated.
export type OomObject = "logits" | "attention" | "gathered_weights";

/// The numbers of the message, in bytes. `cached`, `process` and `others` may follow from the others.
export interface ShortageNumbers {
  device: string | null;
  requested: number | null;
  free: number | null;
  capacity: number | null;
  allocated: number | null;
  cached: number | null;
  process: number | null;
  others: number | null;
}

/// A line of the log.
export interface EvidenceLine {
  line: number;
  text: string;
}

/// A change, with its key, argument, variable or command.
export interface ChangeFirst {
  setting: string;
  text: string;
}

/// Something that the log does not show.
export interface UnknownFact {
  name: OomGap;
  text: string;
}

/// Something that the log does not show.
export type OomGap = "traceback" | "numbers" | "processes" | "killer";

/// zeropilot's prediction for the same job. `measured` is the sum of live tensors and the request.
export interface ShortagePrediction {
  phase: string;
  tensors: number;
  device: number;
  measured: number | null;
  larger: string | null;
  terms: PredictedPart[];
}

/// A part of the predicted tensors.
export interface PredictedPart {
  part: string;
  bytes: number;
}

/// The answer of `zeropilot accuracy`.
export interface OwnAccuracy {
  devices: OwnDevice[];
  runs: OwnRunLine[];
}

/// What own runs on a device say about predictions for it.
export interface OwnDevice {
  device: string;
  memory: OwnError | null;
  step_seconds: OwnError | null;
}

/// Measured over predicted, of different jobs. From `enough` jobs on, bounds rest on them alone.
export interface OwnError {
  jobs: number;
  enough: number;
  least: number;
  median: number;
  most: number;
}

/// One run.
export interface OwnRunLine {
  id: string;
  zeropilot: string;
  model: string;
  device: string;
  gpus: number;
  zero_stage: number;
  micro_batch: number;
  seq_len: number;
  method: string;
  predicted: Needs;
  measured: Needs;
  memory_ratio: number | null;
  step_ratio: number | null;
  counts: boolean;
}

/// What a rank needed, or was predicted to need; what is not known is absent.
export interface Needs {
  device?: number | null;
  allocated?: number | null;
  reserved?: number | null;
  step_seconds?: number | null;
}

/// What is said of the recommended strategy, of every alternative, of what does not fit and of every fallback.
export interface PlanWords {
  headline: HeadlineWords;
  warnings: string[];
  recommended: RecommendedWords | null;
  nothing: NothingWords | null;
  alternatives: Said[];
  rejected: Said[];
  fallbacks: Said[];
}

/// The answer in few words: whether it fits, what is free, how fast it is, and what it takes to finish.
export interface HeadlineWords {
  title: string;
  verdict: Verdict;
  verdict_words: string;
  capacity: string;
  need: string | null;
  free: string | null;
  lacks: string | null;
  host: string | null;
  step: string | null;
  rate: string | null;
  mfu: string | null;
  tokens: string | null;
  duration: string | null;
  gpu_hours: string | null;
  cost: string | null;
}

/// The recommended strategy in words, its config, and what the script must do itself.
export interface RecommendedWords {
  strategy: string;
  lines: string[];
  config: string;
  by_hand: string[];
}

/// That nothing fits, which memory is short, and what would help.
export interface NothingWords {
  headline: string[];
  limit: string[];
  remedies: Remedy[];
  methods: Remedy[];
}

/// A change that would make something fit: in words, and where an option makes it, that option with its value.
export interface Remedy {
  words: string;
  option: string | null;
  value: string | null;
}

/// A strategy, and what is said of it.
export interface Said {
  strategy: string;
  said: string;
}

/// The words beside [`compare_json`], row by row, for pages that lay them out themselves.
export interface ComparisonWords {
  capacity: string | null;
  strategies: StrategyWords[];
}

/// A strategy of a comparison in words.
export interface StrategyWords {
  strategy: string;
  config: string;
  need: string;
  verdict: string | null;
  host: string;
}

/// What a page shows of a job's memory.
export interface MemoryWords {
  row: RowWords;
  rest: RestWords;
  moment: string;
  savings: SavingWords[];
  bounds: string;
  text: string;
  frames: Frame[];
}

/// What is said of the GPU and the host in one row, as [`compare_words`](super::compare_words) says it of every strategy.
export interface RowWords {
  need: string;
  verdict: string | null;
  host: string;
}

/// What a GPU holds between the phases.
export interface RestWords {
  after_init: HeldWords[];
  after_backward: HeldWords[];
  after_step: HeldWords[];
}

/// A part of memory with its words.
export interface HeldWords {
  name: string;
  words: string;
  bytes: number;
}

/// A change that lowers the memory of a GPU: its name, what to write, and how much it saves.
export interface SavingWords {
  name: string;
  change: string;
  saved: string;
}

/// What a GPU holds in a stretch of a step, by part.
export interface Frame {
  phase: string;
  held: Record<string, number>;
}

/// What a GPU holds through a step, and what it sends.
export interface FilmWords {
  frames: Frame[];
  sent: string;
}

/// A step in words.
export interface SimulationWords {
  text: string;
  cost_estimate: string | null;
  shares: ShareWords[];
  advice: string;
  streams: StreamsWords;
}

/// A part of the time of a step.
export interface ShareWords {
  words: string;
  time: string;
  share: number;
}

/// The streams of a step.
export interface StreamsWords {
  end: number;
  axis: string[];
  lanes: LaneWords[];
  colours: ColourWords[];
}

/// A stream.
export interface LaneWords {
  words: string;
  blocks: BlockWords[];
}

/// Something that happens in a stream.
export interface BlockWords {
  begin: number;
  end: number;
  words: string;
  time: string;
  colour: string;
}

/// A colour, and what it stands for.
export interface ColourWords {
  words: string;
  colour: string;
}

/// A checked config in words.
export interface CheckWords {
  text: string;
}

/// A config with its fixes applied.
export interface FixWords {
  text: string;
  diff: string;
}

/// A pasted text, recognized.
export interface PastedText {
  kind: string;
  config: string | null;
  certain: boolean;
  named_config: string | null;
  front_end: string | null;
  world_size: number | null;
  script: Record<string, unknown>;
}

/// A pasted text in words.
export interface PastedWords {
  title: string;
  next: string;
  changes: string[];
}

/// A key or a concept in words.
export interface TopicWords {
  text: string;
  markdown: string | null;
}

/// What can be written at a place.
export interface Completions {
  start: number;
  end: number;
  comma: number | null;
  choices: CompletionChoice[];
}

/// A key or a value.
export interface CompletionChoice {
  label: string;
  path: string | null;
  note: string | null;
  deprecated: boolean;
  head: string;
  value: string | null;
  several: boolean;
  tail: string;
}

/// What can be chosen.
export interface Catalogue {
  models: CatalogueModel[];
  accelerators: CatalogueGpu[];
  engines: string[];
  front_ends: string[];
  targets: string[];
  version: string;
}

/// What can be chosen, in words.
export interface CatalogueWords {
  parts: PartWords[];
  concepts: ConceptWords[];
}

/// A part of memory, with its words and its colour.
export interface PartWords {
  name: string;
  words: string;
  colour: string;
}

/// A concept with its title.
export interface ConceptWords {
  name: string;
  title: string;
}
