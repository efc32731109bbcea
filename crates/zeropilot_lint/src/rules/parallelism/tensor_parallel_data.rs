use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Call;
use zeropilot_text::Text;

use super::{TENSOR_PARALLEL, tensor_parallel};

pub(crate) static RULE: Rule = Rule {
    code: "L23",
    name: "tensor-parallel-data",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new(
        "ranks in a tensor-parallel group get different samples",
        "同一个张量并行组内的 rank 收到了不同的样本",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/engine.py, _configure_tensor_parallel_states"],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "sampler = DistributedSampler(data)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
        ("ds.json", TENSOR_PARALLEL),
    ])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "sampler = DistributedSampler(data, num_replicas=1, rank=0)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", TENSOR_PARALLEL),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "sampler = DistributedSampler(data)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}"#),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`DistributedSampler` gives each rank its own samples, but groups of {ranks} ranks need the same ones",
        "`DistributedSampler` 会给每个 rank 不同的样本，而每 {ranks} 个 rank 必须使用同一批样本",
    ),
    why: Text::new(
        "The ranks in a tensor-parallel group compute one batch together. DeepSpeed compares their inputs in the first forward pass and exits with \"Data inconsistency within the TP group\".",
        "一个张量并行组的各个 rank 共同计算同一个 batch。DeepSpeed 在第一次前向时比较它们的输入，不一致就以 `Data inconsistency within the TP group` 退出。",
    ),
    help: Text::new(
        "pass `num_replicas` (ranks divided by `autotp_size`) and `rank` (the rank divided by `autotp_size`, rounded down) to `DistributedSampler`",
        "给 `DistributedSampler` 传入 `num_replicas`（总卡数除以 `autotp_size`）和 `rank`（rank 编号除以 `autotp_size`，向下取整）",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(ranks) = tensor_parallel(training.config) else { continue };
        let is_plain = |call: &&Call| {
            call.name() == "DistributedSampler"
                && call.positional.len() < 2
                && !call.has_more
                && call.keyword("num_replicas").is_none()
                && call.questions.is_empty()
        };
        for call in training.script.calls.iter().filter(is_plain) {
            let place = training.place(call.span);
            let told = Diagnostic::new(&RULE, &WORDING, "", place.span).with("ranks", ranks);
            found.at(&place, told);
        }
    }
}
