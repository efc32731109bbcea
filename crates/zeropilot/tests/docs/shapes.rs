//! The shapes of JSON: of answers from their types, of records from one of each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use zeropilot_record::{
    Activity, Attempt, Cause, Ending, Event, Evidence, Fullest, GpuProcess, GpuUse, HangReason,
    Jumped, Measured, Memory, NoResume, NoStack, NodeOf, Offload, Phase, PhaseNeeds, RankMemory,
    RanksAt, RunEvent, RunInfo, Saved, Setup, StepParts, Strategy, Term, TrainedStep, Verdict,
};
use zeropilot_text::{Language, Text};
use zeropilot_view::answers::Shapes;

use crate::answers::reference;
use crate::commands::run;
use crate::reference::head;

/// A config in which something is found.
const CONFIG: &str =
    r#"{"train_batch_size": 64, "gradient_accumulation_steps": 32, "overlap_comm": true}"#;

/// One that is accepted, and filled later.
const AUTO: &str = r#"{"train_batch_size": "auto", "zero_optimization": {"stage": 2}}"#;

/// A job that uses the second.
const JOB: &str =
    "torchrun --nproc_per_node 8 t.py --deepspeed auto.json --model_name_or_path gpt2 --use_vllm\n";

/// A log that ends for want of memory.
const LOG: &str = "[rank0]:   File \"torch/_tensor.py\", line 522, in backward\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.50 GiB of which 1.50 GiB is free. Including non-PyTorch memory, this process has 38.00 GiB memory in use. Of the allocated memory 36.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated.\n";

/// Questions whose answers together show what a verb can say, by the name of its shape.
const QUESTIONS: [(&str, &[&str]); 10] = [
    (
        "Check",
        &[
            "zeropilot check ds.json --world-size 4 --output-format json",
            "zeropilot check auto.json --output-format json",
        ],
    ),
    (
        "Plan",
        &[
            "zeropilot plan --model qwen3-8b --gpus 8xA100-80G --seq-len 1024 --objective cost --tokens 10B --cost 2.5 --json",
            "zeropilot plan --model llama-3.1-70b --gpus 1x24GB --host-ram 64GiB --json",
        ],
    ),
    (
        "Memory",
        &[
            "zeropilot memory --model gpt2 --gpus 2xA100-40G --seq-len 512 --json",
            "zeropilot memory --model gpt2 --gpus 2 --seq-len 512 --offload --host-ram 1TiB --json",
        ],
    ),
    (
        "Comparison",
        &["zeropilot memory --model gpt2 --gpus 2xA100-40G --seq-len 512 --compare --json"],
    ),
    (
        "Simulation",
        &[
            "zeropilot simulate --model gpt2 --gpus 2x8xA100-40G --seq-len 512 --json",
            "zeropilot simulate --model gpt2 --gpus 8xA100-40G --seq-len 512 --scale 8..16 --tokens 1B --cost 2/gpu-hour --json",
        ],
    ),
    (
        "Key",
        &[
            "zeropilot explain reduce_bucket_size --json",
            "zeropilot explain train_batch_size --json",
        ],
    ),
    (
        "ExplainedFile",
        &["zeropilot explain ds.json --world-size 4 --json", "zeropilot explain train.sh --json"],
    ),
    ("RulePage", &["zeropilot rule B03 K02 --output-format json"]),
    (
        "LogDiagnosis",
        &[
            "zeropilot diagnose oom.log --json",
            "zeropilot diagnose oom.log --model gpt2 --gpus 2xA100-40G --seq-len 512 --json",
            "zeropilot diagnose ds.json --json",
        ],
    ),
    ("Created", &["zeropilot new zero3 --world-size 2 -o new.json --json"]),
];

/// What a field holds, over all values that were seen.
#[derive(Default)]
struct Field {
    kinds: Vec<&'static str>,
    example: Option<String>,
}

#[derive(Default)]
struct Fields {
    order: Vec<String>,
    fields: BTreeMap<String, Field>,
}

impl Fields {
    fn add(&mut self, path: &str, value: &Value) {
        match value {
            // Configs have a reference of their own.
            Value::Object(_) if path.ends_with("config") || path.ends_with("resolved") => {
                self.leaf(path, "DeepSpeed config", None);
            }
            Value::Object(members) if members.is_empty() => self.leaf(path, "object", None),
            Value::Object(members) => self.members(path, members),
            Value::Array(items) if items.is_empty() => self.leaf(path, "array", None),
            Value::Array(items) => {
                items.iter().for_each(|item| self.add(&format!("{path}[]"), item));
            }
            Value::Null => self.leaf(path, "null", None),
            Value::Bool(_) => self.leaf(path, "boolean", Some(value)),
            Value::String(_) => self.leaf(path, "string", Some(value)),
            Value::Number(number) if number.is_f64() => self.leaf(path, "number", None),
            Value::Number(_) => self.leaf(path, "integer", None),
        }
    }

    fn members(&mut self, path: &str, members: &Map<String, Value>) {
        for (name, value) in members {
            let dot = if path.is_empty() { "" } else { "." };
            self.add(&format!("{path}{dot}{name}"), value);
        }
    }

    fn leaf(&mut self, path: &str, kind: &'static str, value: Option<&Value>) {
        if !self.fields.contains_key(path) {
            self.order.push(path.to_owned());
        }
        let field = self.fields.entry(path.to_owned()).or_default();
        if !field.kinds.contains(&kind) {
            field.kinds.push(kind);
        }
        let short = value
            .map(Value::to_string)
            .filter(|text| text.chars().count() < 40 && !text.contains('`'));
        field.example = field.example.take().or(short);
    }

    fn table(&self, language: Language) -> String {
        let columns = Text::new("| field | type | for example |", "| 字段 | 类型 | 例如 |");
        let mut text = format!("{}\n| --- | --- | --- |\n", columns.get(language));
        for path in &self.order {
            let Field { kinds, example } = &self.fields[path];
            // An empty array or object says nothing where a full one was seen too.
            let inside = [format!("{path}[]"), format!("{path}.")];
            let is_known =
                self.order.iter().any(|other| inside.iter().any(|at| other.starts_with(at)));
            if is_known && kinds.iter().all(|kind| matches!(*kind, "array" | "object")) {
                continue;
            }
            let example =
                example.as_ref().map(|example| format!("`{}`", example.replace('|', "\\|")));
            let _ = writeln!(
                text,
                "| `{path}` | {} | {} |",
                kinds.join(", "),
                example.unwrap_or_default()
            );
        }
        text
    }
}

/// Real answers have the shapes that are documented, and nothing else.
pub(crate) fn answers_are_valid() {
    let directory = directory();
    let types = Shapes::all().types;
    for (name, questions) in QUESTIONS {
        let mut schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": types});
        close(&mut schema);
        let schema = jsonschema::validator_for(&schema).expect("a schema");
        for question in questions {
            let (stdout, code) = run(question, directory.path(), "C.UTF-8");
            assert!(matches!(code, Some(0 | 1)), "{question}: {code:?}");
            let answer: Value = serde_json::from_str(&stdout).expect("JSON");
            let all = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
            for mut one in all {
                if let Some(answer) = one.as_object_mut().filter(|_| question.contains("explain")) {
                    answer.remove("kind");
                }
                let wrong: Vec<String> = schema
                    .iter_errors(&one)
                    .map(|error| format!("{}: {error}", error.instance_path()))
                    .collect();
                assert!(wrong.is_empty(), "{question}: {}", wrong.join("\n"));
            }
        }
    }
}

/// Lets objects have no member that is not named.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("properties") && members.get("type") == Some(&json!("object")) {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// With the configs that are asked about.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, config) in
        [("ds.json", CONFIG), ("auto.json", AUTO), ("train.sh", JOB), ("oom.log", LOG)]
    {
        std::fs::write(directory.path().join(name), config).expect("a writable directory");
    }
    directory
}

fn record(value: &Value) -> Fields {
    let mut fields = Fields::default();
    fields.add("", value);
    fields
}

pub(crate) fn chapter(language: Language) -> String {
    let mut text = head(
        Text::new("JSON shapes", "JSON 结构"),
        Text::new(
            "Fields of the JSON that zeropilot writes for programs. Sizes are in bytes and times in seconds. An object with \
             `\"shape\": 1` only gains fields within that shape: ignore fields that you do not know.",
            "供程序读取的 JSON 字段。大小以字节计，时间以秒计。带 `\"shape\": 1` 的对象在同一 shape 内只增不改：\
             遇到不认识的字段请跳过。",
        ),
        language,
    );
    text.push_str(&reference::tables(&Shapes::all(), language));
    let files = [
        ("run.json", serde_json::to_value(run_info())),
        ("verdict.json", serde_json::to_value(verdict())),
        ("steps.jsonl", serde_json::to_value(trained_step())),
    ];
    for (name, value) in files {
        let table = record(&value.expect("JSON")).table(language);
        let _ = write!(text, "\n## {name}\n\n{table}");
    }
    let _ = write!(text, "\n## events.jsonl\n");
    for happening in run_events() {
        let event = serde_json::to_value(Event::new(0.5, happening)).expect("JSON");
        let name = event["event"].as_str().expect("a name").to_owned();
        let _ = write!(text, "\n### {name}\n\n{}", record(&event).table(language));
    }
    text
}

fn trained_step() -> TrainedStep {
    TrainedStep {
        at: 0.5,
        attempt: 1,
        step: 20,
        loss: Some(0.5),
        grad_norm: Some(0.5),
        learning_rate: Some(0.5),
        seconds: Some(0.5),
    }
}

fn run_info() -> RunInfo {
    RunInfo {
        shape: zeropilot_record::SHAPE,
        id: "20260101-120000-1".to_owned(),
        started_at: 0.5,
        command: vec!["torchrun".to_owned()],
        directory: "/home/me".to_owned(),
        host: Some("node1".to_owned()),
        checkpoints: Some("/home/me/out".to_owned()),
        config: Some("ds.json".to_owned()),
        world_size: Some(2),
        predicted: Some(1),
        fullest: Some(Fullest { phase: Phase::Backward, near: Some("lm_head".to_owned()) }),
        phases: vec![PhaseNeeds { phase: Phase::Backward, bytes: 1, seconds: Some(0.5) }],
        predicted_step_seconds: Some(0.5),
        node: Some(NodeOf { job: "10.0.0.1:29500".to_owned(), node: Some(1), nodes: 2 }),
        total_steps: Some(20),
        tokens_per_step: Some(1),
        supervisor: 1,
        falls_back: true,
        environment: BTreeMap::new(),
        packages: BTreeMap::from([("deepspeed".to_owned(), "0.19.8".to_owned())]),
        zeropilot: "0.1.0".to_owned(),
    }
}

fn verdict() -> Verdict {
    let attempt = Attempt {
        number: 1,
        strategy: fallback(),
        config: Some("config-1.json".to_owned()),
        resumed_from: Some("out/global_step10".to_owned()),
        ending: Ending::Exited(0),
        cause: Cause::Completed,
        last_step: Some(20),
        total_steps: Some(20),
        last_loss: Some(0.5),
        seconds: 0.5,
        measured: Measured {
            device: Some(1),
            resident: Some(1),
            allocated: Some(1),
            reserved: Some(1),
            step_seconds: Some(0.5),
            parts: Some(StepParts { forward: 0.5, backward: 0.5, step: 0.5 }),
        },
        evidence: vec![
            Evidence::CommandEnded(Ending::Exited(0)),
            Evidence::RanksLeft(vec![1]),
            Evidence::RanksDone { done: 1, seen: 2 },
            Evidence::KernelKills(1),
            Evidence::RankSignaled { rank: Some(1), signal: 9 },
            Evidence::FailedFirst(1),
            Evidence::Exception {
                rank: Some(1),
                worker: Some(0),
                line: "…".to_owned(),
                place: Some("train.py:75".to_owned()),
            },
            Evidence::NormNotFiniteSince(1),
            Evidence::StepsDone(20),
            Evidence::Disk { mount: "/".to_owned(), free: 1, total: 1 },
            Evidence::RanksAt(ranks_at()),
            Evidence::Hang(hang_reason()),
            Evidence::LogLine("…".to_owned()),
        ],
    };
    let saved = Saved { step: 20, path: "/home/me/out/global_step20".to_owned(), at: Some(0.5) };
    Verdict::new("20260101-120000-1", Cause::Completed, vec![attempt], 0.5)
        .after(0.5)
        .with_checkpoint(Some(saved))
}

fn ranks_at() -> RanksAt {
    RanksAt {
        ranks: vec![0],
        collective: Some("barrier".to_owned()),
        pending: Some("all_reduce".to_owned()),
        activity: Some(Activity::Saving),
        place: Some("train.py:75".to_owned()),
        innermost: Some("barrier (…/torch/distributed/distributed_c10d.py:5356)".to_owned()),
        kernel: Some("S futex_do_wait".to_owned()),
        no_stack: Some(NoStack::NoTool),
    }
}

fn hang_reason() -> HangReason {
    HangReason::OneRank {
        condition: "rank == 0".to_owned(),
        place: "train.py:74".to_owned(),
        rule: Some("H08".to_owned()),
    }
}

fn fallback() -> Setup {
    Setup::Strategy(Strategy {
        stage: 3,
        offload_optimizer: Offload::Cpu,
        offload_param: Offload::None,
        micro_batch: Some(2),
        gradient_accumulation_steps: Some(4),
    })
}

/// One of each.
fn run_events() -> Vec<RunEvent> {
    let words = |text: &str| text.to_owned();
    vec![
        RunEvent::RunStarted { id: words("20260101-120000-1"), command: vec![words("torchrun")] },
        RunEvent::Continued { attempts: 1 },
        RunEvent::Preflight {
            errors: 0,
            warnings: 1,
            findings: vec!["ds.json:5:3: warning K02 …".to_owned()],
        },
        RunEvent::CheckpointsShared {
            run: words("20260101-115900-1"),
            checkpoints: words("/home/me/out"),
        },
        RunEvent::CheckpointsFound { checkpoints: words("/home/me/out"), step: 20 },
        RunEvent::NoRanksYet { seconds: 0.5 },
        RunEvent::Room { memory: Memory::Device, least: 1, expected: 1, left: 1 },
        RunEvent::AttemptStarted { attempt: 1, strategy: fallback(), pid: 1 },
        RunEvent::RankSeen { rank: 0, pid: 1 },
        RunEvent::RankGone { rank: 0, ending: Ending::Signaled(9) },
        RunEvent::Step { step: 1, loss: Some(0.5) },
        RunEvent::Memory { ranks: vec![RankMemory { rank: 0, rss: 1 }] },
        RunEvent::Pace {
            steps_per_second: 0.5,
            tokens_per_second: Some(0.5),
            total_steps: Some(20),
        },
        RunEvent::Gpus { gpus: vec![gpu()] },
        RunEvent::Allocator { allocated: Some(1), reserved: Some(1) },
        RunEvent::Fingerprint { id: words("cuda_oom"), line: words("…"), rank: Some(0) },
        RunEvent::NotFinite { since: Some(1) },
        RunEvent::NormNotFinite { since: 1 },
        RunEvent::Spike { what: Jumped::Loss, step: 1, value: 0.5, usual: 0.5 },
        RunEvent::Slower { seconds_per_step: 0.5, usual: 0.5 },
        RunEvent::PaceCompared { seconds_per_step: 0.5, predicted: 0.5 },
        RunEvent::Straggler { rank: 0, waited: 7, looks: 12, stood: ranks_at() },
        RunEvent::Hang {
            seconds: 0.5,
            ranks: vec![0],
            stood: vec![ranks_at()],
            explanation: Some(hang_reason()),
        },
        RunEvent::SignalPassed { signal: 10, processes: 2 },
        RunEvent::Stopping { signal: 15 },
        RunEvent::AttemptEnded { attempt: 1, ending: Ending::Exited(0), cause: Cause::Completed },
        RunEvent::MemoryCompared {
            rank: Some(0),
            phase: Phase::Backward,
            measured: 1,
            predicted: 1,
            terms: vec![Term { name: words("activations"), bytes: 1 }],
            larger: Some(words("activations")),
        },
        RunEvent::FallbackTaken { strategy: fallback(), config: words("config-2.json") },
        RunEvent::Resuming { checkpoint: words("out"), step: 1 },
        RunEvent::BeginningAnew { reason: NoResume::OtherShape, checkpoints: Some(words("out")) },
        RunEvent::NotStartedAgain { reason: NoResume::OtherShape, checkpoints: words("out") },
        RunEvent::ScratchNotAllowed {
            reason: NoResume::OtherShape,
            step: 20,
            checkpoint: words("/home/me/out/global_step20"),
        },
        RunEvent::Restarting { delay: 0.5 },
        RunEvent::RunEnded { cause: Cause::Completed, exit_code: 0 },
    ]
}

fn gpu() -> GpuUse {
    GpuUse {
        index: 0,
        name: "NVIDIA A100-SXM4-80GB".to_owned(),
        used: 1,
        total: 1,
        utilization: Some(1),
        watts: Some(0.5),
        celsius: Some(1),
        processes: vec![GpuProcess { pid: 1, rank: Some(0), used: Some(1) }],
    }
}
