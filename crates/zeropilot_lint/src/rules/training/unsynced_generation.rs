use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::loads_a_model;
use zeropilot_job::{Call, Value};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3, asks_for_the_stage};

pub(crate) static RULE: Rule = Rule {
    code: "H01",
    name: "unsynced-generation",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "ranks generate text without staying in sync",
        "生成文本时各 rank 没有保持同步",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed#860",
        "deepspeedai/DeepSpeed#3550",
        "huggingface/transformers#22242",
        "huggingface/transformers#18281",
    ],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py").files(&[
        ("t.py", "model = AutoModelForCausalLM.from_pretrained('m')\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntext = engine.module.generate(ids, max_new_tokens=64)\n"),
        ("ds.json", STAGE_3),
    ])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "model = AutoModelForCausalLM.from_pretrained('m')\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntext = engine.module.generate(ids, max_new_tokens=64, synced_gpus=True)\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "keep = HfDeepSpeedConfig('ds.json')\nmodel = AutoModelForCausalLM.from_pretrained('m')\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntext = engine.module.generate(ids, max_new_tokens=64)\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "model = AutoModelForCausalLM.from_pretrained('m')\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntext = engine.module.generate(ids, max_new_tokens=64)\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` hangs as soon as one rank finishes generating before another",
        "只要有一个 rank 先生成完，`{call}` 就会卡住",
    ),
    why: Text::new(
        "Under ZeRO stage 3, each forward pass gathers weights from all ranks, including ranks that have finished generating. transformers keeps the ranks in sync only if `HfDeepSpeedConfig` or `TrainingArguments(deepspeed=…)` registers the config, and this script creates neither.",
        "ZeRO stage 3 下每次前向都要从所有 rank 聚合权重，已经生成完的 rank 也要参与。只有 `HfDeepSpeedConfig` 或 `TrainingArguments(deepspeed=…)` 登记过配置，transformers 才会自动让各 rank 保持同步，而这个脚本两者都没有。",
    ),
    help: Text::new(
        "pass `synced_gpus=True`, or create an `HfDeepSpeedConfig` before you load the model and keep a reference to it",
        "传入 `synced_gpus=True`；或在加载模型之前创建 `HfDeepSpeedConfig`，并一直保留对它的引用",
    ),
};

/// What makes transformers know, or makes weights whole.
const OTHERWISE: [&str; 3] =
    ["HfDeepSpeedConfig", "GatheredParameters", "unwrap_model_for_generation"];

/// Arguments that settle it, or may give every text the same length.
const SETTLED: [&str; 4] = ["synced_gpus", "min_new_tokens", "min_length", "generation_config"];

fn is_left_to_itself(call: &Call) -> bool {
    !call.has_more
        && !asks_for_the_stage(call)
        && SETTLED.iter().all(|name| call.keyword(name).is_none())
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        let script = training.script;
        let knows = OTHERWISE.iter().any(|name| script.calls(name))
            || script.training_arguments().next().is_some();
        let Some((initialize, engine)) = script.engine().filter(|_| !knows) else { continue };
        let is_of_transformers = match initialize.argument(1, "model") {
            Some((Value::Call(callee), _)) => loads_a_model(callee),
            _ => false,
        };
        if !is_of_transformers || training.launch.world == Some(1) {
            continue;
        }
        let names = [format!("{engine}.generate"), format!("{engine}.module.generate")];
        let calls = script.calls.iter().filter(|call| names.contains(&call.callee));
        for call in calls.filter(|call| script.is_on_engine(call) && is_left_to_itself(call)) {
            let diagnostic =
                Diagnostic::new(&RULE, &WORDING, "", call.span).with("call", call.callee.as_str());
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
