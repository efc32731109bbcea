use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::{STAGE_2, STAGE_3};
use zeropilot_job::{Call, Place, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "Z09",
    name: "whisper-stage-3",
    group: Group::Construction,
    severity: Severity::Error,
    summary: Text::new(
        "Whisper loaded under ZeRO stage 3",
        "ZeRO stage 3 下加载 Whisper",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers src/transformers/models/whisper/modeling_whisper.py"],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = Seq2SeqTrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = WhisperForConditionalGeneration.from_pretrained('openai/whisper-small')\nSeq2SeqTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = Seq2SeqTrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForSpeechSeq2Seq.from_pretrained('openai/whisper-large-v3')\nSeq2SeqTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = Seq2SeqTrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = WhisperForConditionalGeneration.from_pretrained('openai/whisper-small')\nSeq2SeqTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = Seq2SeqTrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForSpeechSeq2Seq.from_pretrained('facebook/s2t-small-librispeech-asr')\nSeq2SeqTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "transformers cannot load Whisper under ZeRO stage 3",
        "ZeRO stage 3 下，transformers 无法加载 Whisper",
    ),
    why: Text::new(
        "Under stage 3, transformers partitions the model while it loads the weights. Whisper fills its position table from the shape of a partitioned weight and fails: `TypeError: sinusoids() missing 1 required positional argument: 'channels'` (transformers 5.22).",
        "stage 3 下，transformers 会分片加载模型，而 Whisper 要按权重的形状填充位置表；权重已被切分，因此报错退出：`TypeError: sinusoids() missing 1 required positional argument: 'channels'`（transformers 5.22）。",
    ),
    help: Text::new(
        "use stage 2, or load the model before you create the training arguments: the model fits on one GPU, and `deepspeed.initialize` partitions it",
        "改用 stage 2，或者在创建训练参数之前加载模型：单卡放得下，`deepspeed.initialize` 会再切分",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (call, name) in job.calls_under_stage_3().filter(|(call, _)| loads_whisper(call)) {
        let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
        found.at(&Place::in_file(name, call.span), diagnostic);
    }
}

/// Whether a call loads Whisper, by its class or by the name of the checkpoint.
fn loads_whisper(call: &Call) -> bool {
    let Some(class) = call.callee.strip_suffix(".from_pretrained") else { return false };
    let class = class.rsplit('.').next().unwrap_or(class);
    let is_named = || {
        let name = call.argument(0, "pretrained_model_name_or_path");
        matches!(name, Some((Value::Literal(name), _)) if name.to_lowercase().contains("whisper"))
    };
    match class {
        "WhisperForConditionalGeneration" => true,
        "AutoModelForSpeechSeq2Seq" => is_named(),
        _ => false,
    }
}
