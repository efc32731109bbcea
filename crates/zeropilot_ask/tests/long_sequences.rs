//! Published runs on long sequences (`knowledge/field/long-context.jsonl`): what they needed, and how long they could be.
//! Nothing is fitted to them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use serde::Deserialize;
use zeropilot_ask::{
    Attention, MOST_TOKENS, Machines, MemoryRequest, Offload, PlanRequest, Training, memory, plan,
};
use zeropilot_model::Model;

#[derive(Debug, Deserialize)]
struct Row {
    model: String,
    gpu: String,
    gpus: u64,
    sp: u64,
    seq_len: u64,
    features: Vec<String>,
    memory_gib: Option<f64>,
    fits: bool,
    what: Option<String>,
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge/field/long-context.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn model(name: &str) -> Model {
    zeropilot_model::catalogue::find(name).unwrap().model().unwrap()
}

/// GiB that a run is predicted to need: as `nvidia-smi` shows it, or as PyTorch counts tensors.
fn predicted(row: &Row, seq_len: u64) -> f64 {
    let has = |feature: &str| row.features.iter().any(|it| it == feature);
    let per_node = row.gpus.min(8);
    let request = MemoryRequest {
        machines: Machines {
            gpus: Some(format!("{}x{per_node}x{}", row.gpus / per_node, row.gpu)),
            ..Machines::default()
        },
        stage: Some(3),
        offload: Some(match (has("offload_param"), has("offload_optimizer")) {
            (true, _) => Offload::All,
            (false, true) => Offload::Optimizer,
            _ => Offload::None,
        }),
        training: Training {
            seq_len: Some(seq_len),
            sequence_parallel: Some(row.sp),
            grad_checkpointing: Some(true),
            activation_offload: Some(has("act_offload")),
            tiled_mlp: Some(has("tiled_mlp")),
            liger: Some(has("liger")),
            attention: Some(Attention::Flash),
            ..Training::default()
        },
        ..MemoryRequest::default()
    };
    let answer = memory(&row.model, model(&row.model), &request).unwrap().answer;
    let need = if row.what.is_some() { answer.allocated() } else { answer.device() };
    need.expected().0 as f64 / f64::from(1 << 30)
}

#[test]
fn published_memory_is_met() {
    let mut errors = Vec::new();
    for row in rows() {
        let Some(measured) = row.memory_gib else { continue };
        let own = predicted(&row, row.seq_len);
        let error = own / measured - 1.0;
        println!(
            "{:14} {:3} GPUs {:9} tokens: {own:6.1} GiB, measured {measured:6.1}: {:+.1} %",
            row.model,
            row.gpus,
            row.seq_len,
            error * 100.0
        );
        errors.push(error.abs());
    }
    errors.sort_by(f64::total_cmp);
    let (median, worst) = (errors[errors.len() / 2], errors.last().unwrap());
    println!("{} runs: median {:.1} %, worst {:.1} %", errors.len(), median * 100.0, worst * 100.0);
    assert!(errors.len() >= 11 && median <= 0.08 && *worst <= 0.12, "{errors:?}");
}

/// What an H100 offers, and how much more than that a prediction may be: the prediction is an expectation.
const CAPACITY_GIB: f64 = 79.1;
const OVER: f64 = 1.05;

#[test]
fn what_fits_is_not_said_to_be_far_too_large() {
    for row in rows().iter().filter(|row| row.fits && row.gpu == "H100") {
        let own = predicted(row, row.seq_len);
        println!("{:14} {:3} GPUs {:9} tokens: {own:.1} GiB", row.model, row.gpus, row.seq_len);
        assert!(own <= CAPACITY_GIB * OVER, "{row:?}: {own}");
    }
}

/// The longest sequences that were published for Llama 3.1 8B, against the longest that are predicted: what memory allows,
/// but no more than 2³¹ elements of hidden states on a GPU, where the kernels of these runs end.
#[test]
fn longest_sequences_are_met() {
    let most = |row: &Row| {
        let (mut low, mut high) = (row.seq_len / 2, (row.seq_len * 2).min(MOST_TOKENS));
        while high - low > row.seq_len / 64 {
            // Tiles and shares divide it.
            let middle = usize::midpoint(low as usize, high as usize) as u64 / 4096 * 4096;
            if predicted(row, middle) <= CAPACITY_GIB { low = middle } else { high = middle }
        }
        low.min(row.sp * (1 << 31) / 4096)
    };
    for (gpus, published) in
        [(1, 500_000.0), (8, 3_700_000.0), (16, 8_000_000.0), (32, 15_000_000.0)]
    {
        let is_it = |row: &&Row| {
            row.model == "llama-3.1-8b"
                && row.gpus == gpus
                && row.gpu == "H100"
                && row.features.len() >= 4
                && row.features.iter().any(|it| it == "tiled_mlp")
                && row.features.iter().any(|it| it == "act_offload")
        };
        let all = rows();
        let row = all.iter().find(is_it).unwrap();
        let own = most(row) as f64;
        println!(
            "{gpus} GPUs: {:.2} M tokens, published {:.2} M: {:+.0} %",
            own / 1e6,
            published / 1e6,
            (own / published - 1.0) * 100.0
        );
        assert!((own / published - 1.0).abs() <= 0.15, "{gpus} GPUs: {own}");
    }
}

/// The same lengths as `plan` finds them: expected to fit, with the changes of the script that those runs had.
#[test]
fn longest_sequences_are_found() {
    for (gpus, published) in [
        ("1xH100", 500_000.0),
        ("8xH100", 3_700_000.0),
        ("2x8xH100", 8_000_000.0),
        ("4x8xH100", 15_000_000.0),
    ] {
        let request = PlanRequest {
            machines: Machines {
                gpus: Some(gpus.to_owned()),
                host_ram: Some(zeropilot_units::Bytes(1_900_000_000_000)),
                ..Machines::default()
            },
            max_seq_len: true,
            training: Training {
                liger: Some(true),
                attention: Some(Attention::Flash),
                ..Training::default()
            },
            ..PlanRequest::default()
        };
        let longest =
            plan("llama-3.1-8b", &model("llama-3.1-8b"), &request).unwrap().longest.unwrap();
        let last = longest.reaches.last().unwrap();
        let own = longest.expected as f64;
        println!(
            "{gpus}: {:.2} M tokens expected, {:.2} M sure, published {:.2} M: {:+.0} % ({:?})",
            own / 1e6,
            last.sequence as f64 / 1e6,
            published / 1e6,
            (own / published - 1.0) * 100.0,
            last.bound
        );
        assert!((own / published - 1.0).abs() <= 0.15, "{gpus}: {own}");
        assert!(last.sequence <= longest.expected, "{gpus}");
    }
}
