//! A plan as words and as data.

pub mod changes;
mod current;
mod headline;
mod html;
pub(crate) mod json;
mod longest;
mod offers;
mod page;
mod reason;
mod script;
mod shortage;

pub use html::html;
pub use json::json;
pub use offers::offers_take_long;
pub use page::{PlanWords, words};

use unicode_width::UnicodeWidthStr;
use zeropilot_ask::{AsWritten, Bill, Changes, MethodName, Planned, Provenance, TaskName};
use zeropilot_job::{Origin, Sourced, TrainingJob};
use zeropilot_plan::{
    Fitting, Longest, Offers, Offloaded, Plan, PlanError, Rejected, Target, Way, Work,
    nearest_multiple,
};
use zeropilot_record::Offload;
use zeropilot_step::shape::Checkpoints;
use zeropilot_step::task::Task as Steps;
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Estimate;

use self::reason::why;
use self::shortage::remedy;
use crate::memory::{fit, phase, task};
use crate::simulate::human::{duration, grouped};
use crate::wrap::fold;
use crate::{Layout, escaped, provenance, strategy, talk};

/// A plan with what it was made for.
#[derive(Debug, Clone, Copy)]
pub struct PlanReport<'a> {
    /// The model as the user named it.
    pub model: &'a str,
    /// The GPUs as the user named them.
    pub gpus: &'a str,
    /// Ranks.
    pub world: u64,
    /// Tokens of a sequence.
    pub length: u64,
    /// How long sequences get, where that was asked.
    pub longest: Option<&'a Longest>,
    /// What is trained.
    pub method: MethodName,
    /// What it is trained for.
    pub task: TaskName,
    /// The same as the step model knows it.
    pub steps: &'a Steps,
    /// The plan.
    pub plan: &'a Plan,
    /// What each GPU has.
    pub capacity: Estimate,
    /// Where the config went, if it was written.
    pub written: Option<&'a str>,
    /// Commands that start the choice, by launcher.
    pub commands: &'a [(&'static str, String)],
    /// Where cost decides: plans on ever more of the GPUs.
    pub offers: Option<&'a Offers>,
    /// What is to be finished, and at what price.
    pub bill: Option<Bill>,
    /// What the answer rests on.
    pub provenance: &'a Provenance,
    /// The job as it is written.
    pub current: Option<&'a AsWritten>,
    /// The job that is planned and what to change in it, where its files say how it starts.
    pub changes: Option<(&'a TrainingJob, &'a Changes)>,
    /// Whether a patch can make some of these changes.
    pub has_patch: bool,
}

impl<'a> PlanReport<'a> {
    /// The report of a plan whose config went to `written`, if it did.
    pub fn of(
        planned: &'a Planned,
        commands: &'a [(&'static str, String)],
        written: Option<&'a str>,
    ) -> Self {
        let capacity = planned.cluster.capacity();
        Self {
            model: &planned.model,
            gpus: &planned.gpus,
            world: planned.cluster.world_size(),
            length: planned.length,
            longest: planned.longest.as_ref(),
            method: planned.method,
            task: planned.task,
            steps: &planned.steps,
            plan: &planned.plan,
            capacity: capacity.map(|capacity| capacity.bytes).unwrap_or_default(),
            written,
            commands,
            offers: planned.offers.as_ref(),
            bill: planned.bill,
            provenance: &planned.provenance,
            current: planned.current.as_ref(),
            changes: None,
            has_patch: false,
        }
    }

    /// With what to change in a job; one whose files say no config is started by a command of ours.
    pub fn with_changes(self, job: &'a TrainingJob, changes: &'a Changes, has_patch: bool) -> Self {
        let is_started =
            job.config.as_ref().is_some_and(|config| matches!(config.origin, Origin::File { .. }));
        Self { changes: is_started.then_some((job, changes)), has_patch, ..self }
    }

    /// "8xH100", or "4 of 8xH100" where fewer are cheaper.
    fn place(&self, language: Language) -> String {
        let gpus = escaped(self.gpus);
        let all = self.offers.map(|offers| offers.all.cluster.world_size());
        if all.is_none_or(|all| all == self.world) {
            return gpus.into_owned();
        }
        tr!(language, "{} of {gpus}", "{gpus} 中的 {} 张", self.world)
    }
}

/// "ZeRO-3 + optimizer on host, micro batch 2, recomputing layers".
fn way_words(way: Way, language: Language) -> String {
    let words = |is_so: bool, text: Text| if is_so { text.get(language) } else { "" };
    let checkpointing =
        words(way.work.checkpointing, Text::new(", gradient checkpointing", "，梯度检查点"));
    let fused = words(way.work.fused_loss, Text::new(", fused loss", "，融合 loss"));
    let Work { micro_batch: micro, accumulation, .. } = way.work;
    let batch = strategy::batch(micro, accumulation, language);
    let zero = zero_words(way, language);
    let long = script::long_context(way.work.long_context, language);
    format!("{zero}{batch}{checkpointing}{fused}{long}")
}

/// "ZeRO-3 + hpZ 8 + optimizer on host".
fn zero_words(way: Way, language: Language) -> String {
    let hpz = if way.hpz > 1 { format!(" + hpZ {}", way.hpz) } else { String::new() };
    let (optimizer, weights) = offload(way);
    let offload = strategy::offload(optimizer, weights, language);
    format!("ZeRO-{}{hpz}{offload}", way.shape.stage.number())
}

/// The plan for people.
pub fn human(report: &PlanReport<'_>, layout: &Layout) -> String {
    let language = layout.language;
    let Some(choice) = report.plan.fitting.first() else { return nothing_fits(report, layout) };
    let width = layout.width;
    let mut text = longest::head(report, language);
    text.push_str(&fold(&choice_words(report, choice, language), width));
    text.push_str(&rows(
        Text::new(
            "\nLongest sequences, from the fewest to the most script changes:",
            "\n最长序列（脚本改动由少到多）：",
        )
        .get(language),
        longest::lines(report, language).into_iter(),
        width,
    ));
    text.push_str(&rows(
        &format!("\n{}", offers::head(report, language)),
        offers::lines(report, language).into_iter(),
        width,
    ));
    text.push_str(&rows(
        Text::new("\nAlternatives that fit:", "\n也放得下的方案：").get(language),
        report.plan.fitting[1..].iter().map(|other| row(other, report, language)),
        width,
    ));
    text.push_str(&rejected(&report.plan.rejected, layout));
    text.push_str(&rows(
        Text::new(
            "\nIf the run still runs out of GPU memory, try these fallbacks in order:",
            "\n如果仍然显存不足，依次尝试以下降级方案：",
        )
        .get(language),
        report.plan.fallbacks.iter().map(|fallback| row(fallback, report, language)),
        width,
    ));
    if !report.plan.fallbacks.is_empty() {
        text.push_str(beyond(report.method, language));
    }
    if let Some(path) = report.written {
        text.push_str(&tr!(
            language,
            "\nDeepSpeed config written to {}\n",
            "\nDeepSpeed 配置已保存至 {}\n",
            escaped(path)
        ));
    }
    let job = report.changes.map(|(job, _)| job);
    text.push_str(&fold(&by_hand(choice, job, language), width));
    // Code that is cut cannot be copied.
    text.push_str(&script::code(report, choice, language));
    text.push_str(&fold(&rollout_words(report.steps, language), width));
    match report.changes {
        Some((job, found)) => {
            let strategy = zero_words(choice.way, language);
            text.push_str(&changes::of_job(job, found, report.has_patch, &strategy, language));
            let needs_another = |current: &AsWritten| {
                current.answer.device().expected() != choice.answer.device().expected()
            };
            if found.is_empty()
                && !found.kept.is_empty()
                && report.current.is_some_and(needs_another)
            {
                text.push_str(&fold(&changes::kept(&found.kept, language), width));
            }
        }
        None => text.push_str(&rows(
            Text::new(
                "\nStart the training with one of these commands:",
                "\n启动命令（任选其一）：",
            )
            .get(language),
            report.commands.iter().map(|(_, command)| (command.clone(), String::new())),
            // A command that is cut cannot be copied.
            None,
        )),
    }
    if let Some(current) = report.current {
        text.push_str(&fold(&current::words(current, language), width));
    }
    text.push_str(&fold(&provenance::below(report.provenance, language), width));
    text
}

/// What is left when every fallback was taken: to train less.
fn beyond(method: MethodName, language: Language) -> &'static str {
    match method {
        MethodName::Full => Text::new(
            "  then use LoRA or QLoRA (--method)\n",
            "  仍不够则用 LoRA 或 QLoRA（--method）\n",
        ),
        MethodName::Lora => Text::new(
            "  then use QLoRA (--method qlora)\n",
            "  仍不够则用 QLoRA（--method qlora）\n",
        ),
        MethodName::Qlora => Text::new("", ""),
    }
    .get(language)
}

fn choice_words(report: &PlanReport<'_>, choice: &Fitting, language: Language) -> String {
    let way = way_words(choice.way, language);
    let need = choice.answer.device();
    let Work { micro_batch: micro, accumulation: steps, .. } = choice.way.work;
    let long = choice.way.work.long_context;
    let (shares, groups) = (long.sequence_ranks, long.groups(report.world));
    let batch = micro * steps * groups;
    let spread = script::batch(micro, steps, groups, shares, language);
    let (model, gpus) = (escaped(report.model), report.place(language));
    let frozen = &choice.answer.on_gpu.frozen;
    let task = task::lines(report.task, report.steps, micro, frozen, language);
    let time = time_words(choice, report.length, language);
    let bill = offers::of_choice(report, choice, language);
    let word = fit(need, report.capacity).words(language);
    let spare = report.capacity.expected().saturating_sub(need.expected());
    tr!(
        language,
        (
            "{model} on {gpus}: {way}\n  GPU memory {need} of {}: {word}, {spare} to spare; host memory {} per node\n{task}{time}{bill}  global batch size {batch} = {spread}\n  chosen because it fits even at the upper bound of the prediction and {}\n",
            report.capacity.expected(),
            choice.answer.node().expected(),
            why(report, language)
        ),
        (
            "{model}，{gpus}：{way}\n  显存 {need}，可用 {}：{word}，余 {spare}；每节点主机内存 {}\n{task}{time}{bill}  全局 batch {batch} = {spread}\n  选择理由：按上界也放得下，而且{}\n",
            report.capacity.expected(),
            choice.answer.node().expected(),
            why(report, language)
        )
    )
}

/// What the trainer must be given so that vLLM leaves room for training.
fn rollout_words(steps: &zeropilot_step::task::Task, language: Language) -> String {
    let Some(engine) = steps.colocated() else { return String::new() };
    let share = f64::from(engine.per_mille) / 1000.0;
    let (trl, swift) = match engine.sleeps {
        true => (", vllm_enable_sleep_mode=True", " --sleep_level 1"),
        false => ("", ""),
    };
    tr!(
        language,
        "\nvLLM runs on the same GPUs: GRPOConfig(..., use_vllm=True, vllm_mode=\"colocate\", vllm_gpu_memory_utilization={share}{trl}), or with ms-swift --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization {share}{swift}\n",
        "\nvLLM 在同一批卡上运行：GRPOConfig(..., use_vllm=True, vllm_mode=\"colocate\", vllm_gpu_memory_utilization={share}{trl})；ms-swift 用 --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization {share}{swift}\n"
    )
}

/// What the script itself must do, where no argument says it and the job does not do it already.
fn by_hand(choice: &Fitting, job: Option<&TrainingJob>, language: Language) -> String {
    if !matches!(choice.recipe.target, Target::DeepSpeed | Target::Accelerate) {
        return String::new();
    }
    let mut text = String::new();
    if choice.recipe.target == Target::Accelerate {
        let micro = choice.way.work.micro_batch;
        text.push_str(&tr!(
            language,
            "\nYour script must load this many sequences at once: DataLoader(..., batch_size={micro})\n",
            "\n训练脚本每次要加载这么多条序列：DataLoader(..., batch_size={micro})\n"
        ));
    }
    let work = choice.way.work;
    let does = |of: fn(&TrainingJob) -> Option<&Sourced<bool>>| {
        job.and_then(of).is_some_and(|said| said.value)
    };
    if work.checkpointing
        && !does(|job| job.grad_checkpointing.as_ref())
        && work.long_context.checkpoints == Checkpoints::Counted
    {
        text.push_str(
            Text::new(
                "\nYour script must turn on gradient checkpointing: model.gradient_checkpointing_enable()\n",
                "\n训练脚本需要开启梯度检查点：model.gradient_checkpointing_enable()\n",
            )
            .get(language),
        );
    }
    if work.fused_loss && !does(|job| job.fused_loss.as_ref()) {
        text.push_str(
            Text::new(
                "\nYour script must use a fused linear cross entropy, such as Liger Kernel's\n",
                "\n训练脚本需要使用融合 loss（把输出层和交叉熵合并计算），例如 Liger Kernel 的实现\n",
            )
            .get(language),
        );
    }
    text
}

/// A way with what it needs, and how much slower it is than the choice.
fn row(fitting: &Fitting, report: &PlanReport<'_>, language: Language) -> (String, String) {
    let choice = report.plan.fitting.first();
    let need = fitting.answer.device();
    let slower = fitting.seconds_per_sequence().zip(choice.and_then(Fitting::seconds_per_sequence));
    let slower = slower.map_or_else(String::new, |(own, least)| {
        tr!(language, ", {:.2}× the time", "，耗时 {:.2} 倍", own / least)
    });
    let shown = report.plan.fitting.iter().chain(&report.plan.fallbacks);
    let has_other_sizes = shown.into_iter().any(|Fitting { way, answer, .. }| {
        let is_alike = fitting.way != *way && Way { sizes: way.sizes, ..fitting.way } == *way;
        is_alike && answer.device().expected() > need.expected()
    });
    let smaller = match has_other_sizes {
        true => Text::new(", smaller buckets", "，通信桶更小").get(language),
        false => "",
    };
    (way_words(fitting.way, language) + smaller, format!("{need}{slower}"))
}

/// "step 1.24 s (1.1–1.6), 6604 tokens/s per GPU, MFU 41%"; nothing where the speed is not known.
fn time_words(choice: &Fitting, length: u64, language: Language) -> String {
    let Some(time) = choice.time else { return String::new() };
    let Some(each) = choice.seconds_per_sequence() else { return String::new() };
    let (best, step, worst) = (time.best.total, time.expected.total, time.worst.total);
    let (rate, mfu) = (grouped(length as f64 / each), time.expected.mfu * 100.0);
    tr!(
        language,
        "  step {} ({}–{}), {rate} tokens/s per GPU, MFU {mfu:.0}%\n",
        "  每步 {}（{}–{}），每卡 {rate} token/s，MFU {mfu:.0}%\n",
        duration(step, language),
        duration(best, language),
        duration(worst, language)
    )
}

fn rejected(rejected: &[Rejected], layout: &Layout) -> String {
    let language = layout.language;
    let head = Text::new(
        "\nNot guaranteed to fit, even with the smallest settings:",
        "\n即使用最小设置，也不能保证放得下：",
    )
    .get(language);
    let all = rejected.iter().map(|rejected| rejected_row(rejected, language));
    rows(head, all, layout.width) + &limit(rejected, language)
}

/// When the GPU is fullest in the strategy that comes nearest to fitting, where other models run too.
fn limit(rejected: &[Rejected], language: Language) -> String {
    let has_others = |it: &&Rejected| it.other_models.0 + it.rollout.0 > 0;
    let of_device = rejected.iter().filter(|it| it.over_by().0 > 0).filter(has_others);
    let Some(nearest) = of_device.min_by_key(|rejected| rejected.over_by()) else {
        return String::new();
    };
    let way = way_words(nearest.way, language);
    let moment = phase::moment(nearest.fullest).get(language);
    let (others, rollout) = (nearest.other_models, nearest.rollout);
    let users = match (others.0, rollout.0) {
        (_, 0) => tr!(language, "frozen models use {others}", "其中不训练的模型占 {others}"),
        (0, _) => tr!(language, "vLLM uses {rollout}", "其中 vLLM 占 {rollout}"),
        _ => tr!(
            language,
            "vLLM uses {rollout} and frozen models {others}",
            "其中 vLLM 占 {rollout}，不训练的模型占 {others}"
        ),
    };
    tr!(
        language,
        "Of these, {way} comes closest: GPU memory peaks {moment}, and {users} of it.\n",
        "其中最接近的是 {way}：显存峰值出现在{moment}，{users}。\n"
    )
}

fn rejected_row(rejected: &Rejected, language: Language) -> (String, String) {
    let need = rejected.device;
    let lacks = need.expected().saturating_sub(rejected.capacity);
    let over = if lacks.0 > 0 {
        tr!(language, "{lacks} too much per GPU", "每卡超出 {lacks}")
    } else if rejected.over_by().0 > 0 {
        tr!(language, "{need}: may not fit", "{need}：可能放不下")
    } else {
        tr!(language, "{} too much per host", "每台主机超出 {}", rejected.host_over_by)
    };
    (way_words(rejected.way, language), over)
}

/// Pairs in two columns under a head, or one below the other where these are too wide; nothing without pairs.
fn rows(head: &str, pairs: impl Iterator<Item = (String, String)>, width: Option<usize>) -> String {
    let pairs: Vec<(String, String)> = pairs.collect();
    let widest = pairs.iter().map(|(left, _)| left.width()).max();
    let Some(widest) = widest else { return String::new() };
    let mut text = format!("{head}\n");
    let rightmost = pairs.iter().map(|(_, right)| right.width()).max().unwrap_or(0);
    if width.is_some_and(|width| 4 + widest + rightmost > width) {
        for (left, right) in pairs {
            text.push_str(&fold(&format!("  {left}\n      {right}\n"), width));
        }
        return text;
    }
    for (left, right) in pairs {
        let padding = " ".repeat(widest - left.width());
        text.push_str(format!("  {left}{padding}  {right}").trim_end());
        text.push('\n');
    }
    text
}

fn nothing_fits(report: &PlanReport<'_>, layout: &Layout) -> String {
    let language = layout.language;
    let mut text = nothing_words(report, language);
    let notes = provenance::notes(&report.provenance.notes, language);
    text.push_str(&fold(&notes, layout.width));
    text.push_str(&rejected(&report.plan.rejected, layout));
    text.push_str(&fold(&remedy(report, language), layout.width));
    text
}

fn nothing_words(report: &PlanReport<'_>, language: Language) -> String {
    let (model, gpus) = (escaped(report.model), escaped(report.gpus));
    tr!(language, "{model} on {gpus}: no strategy fits\n", "{model}，{gpus}：没有放得下的方案\n")
}

/// Where a way keeps optimizer states and weights.
fn offload(way: Way) -> (Offload, Offload) {
    match way.shape.offloaded {
        Offloaded::Nothing => (Offload::None, Offload::None),
        Offloaded::Optimizer => (Offload::Cpu, Offload::None),
        Offloaded::Everything => (Offload::Cpu, Offload::Cpu),
        Offloaded::OptimizerToDisk => (Offload::Nvme, Offload::None),
        Offloaded::EverythingToDisk => (Offload::Nvme, Offload::Nvme),
    }
}

/// Why there is no plan.
pub fn problem(error: &PlanError, language: Language) -> String {
    match error {
        PlanError::Lower(error) => talk::lower_error(error, language),
        PlanError::Batch { global, world } => tr!(
            language,
            "error: a global batch size of {global} cannot be divided among {world} GPUs\n  help: choose a multiple of {world}, such as {}",
            "错误：全局 batch {global} 无法平均分给 {world} 张卡\n  建议：取 {world} 的倍数，例如 {}",
            nearest_multiple(*global, *world)
        ),
        PlanError::MicroBatch { global, world, micro } => tr!(
            language,
            "error: {global} samples on {world} GPUs are {} per GPU, not a multiple of the micro-batch size {micro}\n  help: choose another --micro-batch, or a global batch size that is a multiple of {}, such as {}",
            "错误：全局 batch {global} 分到 {world} 张卡，每张卡每步 {} 个样本，不是 micro batch {micro} 的倍数\n  建议：换一个 --micro-batch，或让全局 batch 是 {} 的倍数，例如 {}",
            global / world,
            world * micro,
            nearest_multiple(*global, world * micro)
        ),
        PlanError::NoSuchWay(held) => tr!(
            language,
            "error: DeepSpeed does not support this combination of {}\n  help: change one setting. Stage 0 does not support offload; stages 1 and 2 offload only the optimizer. --sequence-parallel needs stage 3; --activation-offload needs gradient checkpointing",
            "错误：DeepSpeed 不支持这样的组合：{}\n  建议：修改其中一项设置：stage 0 不能卸载，stage 1、2 只能卸载优化器；--sequence-parallel 需要 stage 3，--activation-offload 需要梯度检查点",
            shortage::held_options(*held).join(", ")
        ),
        PlanError::NoMemory => tr!(
            language,
            "error: the GPU memory size is unknown\n  help: write the memory size of one GPU, as in `8x80GB`, or name the GPU model, as in `8xH100`",
            "错误：不知道每张卡的显存\n  建议：写明显存（如 `8x80GB`）或型号（如 `8xH100`）"
        ),
        PlanError::NoSpeed => tr!(
            language,
            "error: zeropilot cannot compute the cost of a run without the speed of the GPUs\n  help: name the GPU model, as in `8xH100`",
            "错误：不知道 GPU 的速度，无法计算开销\n  建议：写明型号，例如 `8xH100`"
        ),
        PlanError::Refused(_) => tr!(
            language,
            "error: zeropilot cannot write a config for these settings\n  help: run `zeropilot new`, which reports contradictory settings",
            "错误：无法按这些要求生成配置\n  建议：运行 `zeropilot new`，它会指出互相矛盾的设置"
        ),
    }
}
