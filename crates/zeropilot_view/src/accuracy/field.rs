//! Own runs as rows of published measurements, for whoever wants to share them: `knowledge/field/README.md` names the
//! fields. Nothing that tells whose they are is in them.

use serde_json::{Value, json};
use zeropilot_model::catalogue;
use zeropilot_record::{Accuracy, Needs, Offload, PredictedJob};
use zeropilot_units::Bytes;

/// A row; none for runs on processors, and for those whose memory was not measured.
pub fn export(run: &Accuracy, number: usize) -> Option<Value> {
    let (job, measured) = (&run.job, &run.measured);
    if job.device == "cpu" {
        return None;
    }
    let (bytes, metric) = peak(measured)?;
    let predicted = Bytes(peak(&run.predicted)?.0);
    let seconds = measured.step_seconds;
    let tokens = job.micro_batch * job.grad_accum * job.seq_len;
    Some(json!({
        "id": format!("own-{number:03}"),
        "source": "",
        "date": null,
        "model": public_name(job),
        "params_b": job.parameters as f64 / 1e9,
        "gpu": job.device,
        "gpus": job.gpus,
        "nodes": job.nodes,
        "interconnect": null,
        "framework": "DeepSpeed",
        "zero_stage": job.zero_stage,
        "offload_optimizer": offload(job.offload_optimizer),
        "offload_param": offload(job.offload_param),
        "precision": job.precision,
        "optimizer": null,
        "method": job.method,
        "lora_rank": job.lora_rank,
        "lora_targets": job.lora_targets,
        "micro_batch": job.micro_batch,
        "grad_accum": job.grad_accum,
        "seq_len": job.seq_len,
        // The length that was asked about: whether samples reach it is not recorded.
        "seq_mode": "asked",
        "grad_ckpt": job.grad_ckpt,
        "flash_attn": null,
        "parallelism": "dp",
        "peak_mem_gb": (bytes as f64 / Bytes::GIB.0 as f64 * 100.0).round() / 100.0,
        "mem_unit": "GiB",
        "mem_metric": metric,
        // Where every sequence is as long as it may be.
        "tokens_per_s_per_gpu": seconds.map(|seconds| (tokens as f64 / seconds).round()),
        "samples_per_s": null,
        "s_per_it": seconds,
        "tflops_per_gpu": null,
        "mfu": null,
        "outcome": "ok",
        "derived": if seconds.is_some() { vec!["tokens_per_s_per_gpu"] } else { Vec::new() },
        "complete_memory": false,
        "complete_throughput": false,
        "notes": format!("recorded by zeropilot {}, which predicted {predicted}", run.zeropilot),
    }))
}

/// What was measured, as exact as it is known, and by whom.
fn peak(needs: &Needs) -> Option<(u64, &'static str)> {
    let of = |bytes: Option<u64>, metric| bytes.map(|bytes| (bytes, metric));
    of(needs.device, "nvidia-smi, GPU memory of the process")
        .or(of(needs.reserved, "torch.cuda.max_memory_reserved"))
        .or(of(needs.allocated, "torch.cuda.max_memory_allocated"))
}

/// A name of the catalogue; any other may be a path of this machine, or nobody else's business.
fn public_name(job: &PredictedJob) -> &str {
    if catalogue::find(&job.model).is_ok() { &job.model } else { "not public" }
}

fn offload(to: Offload) -> &'static str {
    match to {
        Offload::None => "none",
        Offload::Cpu => "cpu",
        Offload::Nvme => "nvme",
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_record::ModelFrom;

    use super::*;

    fn run(model: &str, device: &str) -> Accuracy {
        Accuracy {
            shape: 1,
            id: "20260101-120000-7".to_owned(),
            zeropilot: "0.1.0".to_owned(),
            job: PredictedJob {
                model: model.to_owned(),
                parameters: 1_500_000_000,
                device: device.to_owned(),
                gpus: 2,
                nodes: 1,
                zero_stage: 3,
                precision: "bf16".to_owned(),
                method: "full".to_owned(),
                micro_batch: 2,
                grad_accum: 4,
                seq_len: 1024,
                ..PredictedJob::default()
            },
            model_from: ModelFrom::Option,
            predicted: Needs { device: Some(20 << 30), ..Needs::default() },
            measured: Needs { device: Some(21 << 30), step_seconds: Some(2.0), ..Needs::default() },
            steps: 30,
        }
    }

    #[test]
    fn a_row_says_nothing_about_whose_it_is() {
        let mut row = Value::Null;
        for model in ["/home/ann/secret-model", "ann/secret-model", "secret-model"] {
            row = export(&run(model, "A100-SXM4-80GB"), 3).expect("a row");
            let text = row.to_string();
            assert!(
                !text.contains("ann") && !text.contains("secret") && !text.contains("20260101")
            );
        }
        let known = export(&run("Qwen/Qwen3-8B", "A100-SXM4-80GB"), 3).expect("a row");
        assert_eq!(known["model"], "Qwen/Qwen3-8B");
        // 2 × 4 × 1024 tokens of a GPU in 2 s.
        assert_eq!(
            (&row["tokens_per_s_per_gpu"], &row["peak_mem_gb"]),
            (&json!(4096.0), &json!(21.0))
        );
        assert_eq!(export(&run("Qwen/Qwen3-8B", "cpu"), 1), None);
    }
}
