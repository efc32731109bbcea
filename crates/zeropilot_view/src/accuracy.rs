//! The user's own runs: what was predicted for each, what it needed, and what follows for later predictions.

mod field;

use serde::Serialize;
use serde_json::{Value, json};
use zeropilot_record::{Accuracy, Needs, Offload, PredictedJob};
use zeropilot_step::conformal::{ENOUGH, median};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

pub use self::field::export;
use crate::escaped;
use crate::listing::columns;
use crate::simulate::seconds;

const HEADS: [Text; 6] = [
    Text::new("run", "运行"),
    Text::new("job", "任务"),
    Text::new("memory: predicted → measured", "显存和主机内存：预测 → 实测"),
    Text::new("off by", "相差"),
    Text::new("step: predicted → measured", "每步：预测 → 实测"),
    Text::new("off by", "相差"),
];

/// The answer of `zeropilot accuracy`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnAccuracy<'a> {
    devices: Vec<OwnDevice<'a>>,
    runs: Vec<OwnRunLine<'a>>,
}

/// What own runs on a device say about predictions for it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OwnDevice<'a> {
    device: &'a str,
    memory: Option<OwnError>,
    step_seconds: Option<OwnError>,
}

/// Measured over predicted, of different jobs. From `enough` jobs on, bounds rest on them alone.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OwnError {
    jobs: usize,
    enough: usize,
    least: f64,
    median: f64,
    most: f64,
}

/// One run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OwnRunLine<'a> {
    id: &'a str,
    zeropilot: &'a str,
    model: &'a str,
    device: &'a str,
    gpus: u64,
    zero_stage: u8,
    micro_batch: u64,
    seq_len: u64,
    method: &'a str,
    predicted: Needs,
    measured: Needs,
    memory_ratio: Option<f64>,
    step_ratio: Option<f64>,
    counts: bool,
}

/// Runs, and which of them later predictions rest on.
#[derive(Debug, Clone, Copy)]
pub struct OwnRunsReport<'a> {
    /// All of them, newest first.
    pub runs: &'a [Accuracy],
    /// Those that count: predicted by this version for a model that the user named, the farthest of each job.
    pub counted: &'a [&'a Accuracy],
}

impl<'a> OwnRunsReport<'a> {
    fn counts(&self, run: &Accuracy) -> bool {
        self.counted.iter().any(|counted| counted.id == run.id)
    }

    fn devices(&self) -> Vec<&'a str> {
        let mut devices: Vec<&str> = Vec::new();
        for run in self.counted {
            if !devices.contains(&run.job.device.as_str()) {
                devices.push(&run.job.device);
            }
        }
        devices
    }

    fn error(&self, device: &str, ratio: fn(&Accuracy) -> Option<f64>) -> Option<OwnError> {
        let own = self.counted.iter().filter(|run| run.job.device == device);
        let mut ratios: Vec<f64> = own.filter_map(|run| ratio(run)).collect();
        ratios.sort_by(f64::total_cmp);
        Some(OwnError {
            jobs: ratios.len(),
            enough: ENOUGH,
            least: *ratios.first()?,
            most: *ratios.last()?,
            median: median(ratios)?,
        })
    }

    /// For machines.
    pub fn json(&self) -> Value {
        let line = |run: &'a Accuracy| OwnRunLine {
            id: &run.id,
            zeropilot: &run.zeropilot,
            model: &run.job.model,
            device: &run.job.device,
            gpus: run.job.gpus,
            zero_stage: run.job.zero_stage,
            micro_batch: run.job.micro_batch,
            seq_len: run.job.seq_len,
            method: &run.job.method,
            predicted: run.predicted,
            measured: run.measured,
            memory_ratio: run.memory(),
            step_ratio: run.step(),
            counts: self.counts(run),
        };
        let device = |device: &'a str| OwnDevice {
            device,
            memory: self.error(device, Accuracy::memory),
            step_seconds: self.error(device, Accuracy::step),
        };
        json!(OwnAccuracy {
            devices: self.devices().into_iter().map(device).collect(),
            runs: self.runs.iter().map(line).collect(),
        })
    }

    /// For people.
    pub fn human(&self, language: Language) -> String {
        if self.runs.is_empty() {
            return tr!(
                language,
                ("no run can be compared yet: `zeropilot run --model MODEL -- COMMAND` predicts a run and measures it\n"),
                ("还没有可比较的运行：`zeropilot run --model 模型 -- 启动命令` 会先预测，再实测\n")
            );
        }
        let heads = HEADS.map(|head| head.get(language).to_owned()).to_vec();
        let rows = self.runs.iter().map(|run| self.cells(run, language));
        let mut text = columns(&std::iter::once(heads).chain(rows).collect::<Vec<_>>());
        if self.runs.iter().any(|run| !self.counts(run)) {
            text += &tr!(
                language,
                ("* not counted: the model name came from the launch command, another zeropilot version predicted the run, or another run of the job was farther off\n"),
                ("* 这次运行不计入：模型名取自启动命令、由其他版本的 zeropilot 预测，或同一任务的另一次运行偏差更大\n")
            );
        }
        for device in self.devices() {
            text.push('\n');
            text += &self.device(device, language);
        }
        text
    }

    fn cells(&self, run: &Accuracy, language: Language) -> Vec<String> {
        let mark = if self.counts(run) { "" } else { "*" };
        let bytes = |needs: &Needs| needs.device.or(needs.reserved).or(needs.allocated).map(Bytes);
        let of_step = |needs: &Needs| needs.step_seconds.map(seconds);
        let both = |predicted: Option<String>, measured: Option<String>| match (predicted, measured)
        {
            (Some(predicted), Some(measured)) => format!("{predicted} → {measured}"),
            _ => "–".to_owned(),
        };
        let text = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.to_string());
        vec![
            format!("{}{mark}", escaped(&run.id)),
            job(&run.job, language),
            both(text(bytes(&run.predicted)), text(bytes(&run.measured))),
            run.memory().map_or_else(String::new, percent),
            both(of_step(&run.predicted), of_step(&run.measured)),
            run.step().map_or_else(String::new, percent),
        ]
    }

    fn device(&self, device: &str, language: Language) -> String {
        let name = escaped(device);
        let mut text = String::new();
        for (what, error) in [
            (tr!(language, "memory", "显存和主机内存"), self.error(device, Accuracy::memory)),
            (tr!(language, "step time", "每步用时"), self.error(device, Accuracy::step)),
        ] {
            let Some(OwnError { jobs, least, median, most, .. }) = error else { continue };
            let [least, median, most] = [least, median, most].map(percent);
            text += &tr!(
                language,
                "{name}, {what}: measured values differ from predictions by {median} (median; {least} to {most}; different jobs: {jobs})\n",
                "{name}，{what}：实测与预测相差 {median}（中位数；{least} 到 {most}；不同任务：{jobs} 个）\n"
            );
            text += &if jobs >= ENOUGH {
                tr!(
                    language,
                    "  these runs determine the bounds of later predictions for {name}\n",
                    "  以后对 {name} 的预测，上下界以这些运行为准\n"
                )
            } else {
                tr!(
                    language,
                    ("  runs outside the bounds widen them for later predictions; with {ENOUGH} or more different jobs, the \
                      bounds come from your runs alone\n"),
                    ("  如果这些运行超出上下界，以后的预测会相应放宽上下界；满 {ENOUGH} 个不同任务后，上下界完全以你的运行为准\n")
                )
            };
        }
        text
    }
}

/// That there is nothing to share.
pub fn nothing_to_export(language: Language) -> String {
    tr!(
        language,
        "no run on GPUs to export yet; zeropilot does not export runs on CPUs",
        "还没有可以导出的 GPU 运行；在 CPU 上的运行不会导出"
    )
}

fn percent(ratio: f64) -> String {
    format!("{:+.0}%", 100.0 * (ratio - 1.0))
}

fn job(job: &PredictedJob, language: Language) -> String {
    let PredictedJob { gpus, zero_stage, micro_batch, grad_accum, seq_len, method, .. } = job;
    let (model, device) = (escaped(&job.model), escaped(&job.device));
    let offload = match (job.offload_optimizer, job.offload_param) {
        (Offload::None, Offload::None) => String::new(),
        _ => tr!(language, " with offload", "（卸载）"),
    };
    tr!(
        language,
        "{model} {method}, {gpus}x{device}, ZeRO-{zero_stage}{offload}, {grad_accum} × {micro_batch} × {seq_len} tokens",
        "{model} {method}，{gpus}x{device}，ZeRO-{zero_stage}{offload}，{grad_accum} × {micro_batch} × {seq_len} token"
    )
}
