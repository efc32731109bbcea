use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_config::syntax::Span;
use zeropilot_job::{Call, Value};
use zeropilot_text::Text;

use super::{Quantized, STAGE_2, checkpoint, is_on, literal, quantized_models};

pub(crate) static RULE: Rule = Rule {
    code: "P17",
    name: "quantization-skip-list",
    group: Group::Precision,
    severity: Severity::Warning,
    summary: Text::new(
        "`llm_int8_skip_modules` skips fewer modules than intended",
        "`llm_int8_skip_modules` 跳过的模块比预期少",
    ),
    wordings: &[&HEAD, &TOWER],
    sources: &[
        "huggingface/transformers src/transformers/quantizers/base.py",
        "huggingface/transformers src/transformers/quantizers/quantizers_utils.py",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True, llm_int8_skip_modules=['model.visual'])\nmodel = Qwen2_5_VLForConditionalGeneration.from_pretrained('Qwen/Qwen2.5-VL-7B-Instruct', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True, llm_int8_skip_modules=['lm_head', 'visual'])\nmodel = Qwen2_5_VLForConditionalGeneration.from_pretrained('Qwen/Qwen2.5-VL-7B-Instruct', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True, llm_int8_skip_modules=['lm_head', 'model.visual'])\nmodel = Qwen2_5_VLForConditionalGeneration.from_pretrained('Qwen/Qwen2.5-VL-7B-Instruct', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True, llm_int8_skip_modules=['score'])\nmodel = AutoModelForSequenceClassification.from_pretrained('meta-llama/Llama-3.1-8B', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True, llm_int8_skip_modules=['model.vision_tower'])\nmodel = Gemma3ForConditionalGeneration.from_pretrained('google/gemma-3-4b-it', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True, llm_int8_skip_modules=['vision_tower', 'lm_head'])\nmodel = OwnForCausalLM.from_pretrained('m', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static HEAD: Wording = Wording {
    message: Text::new(
        "`llm_int8_skip_modules` does not list `lm_head`, so the output layer is quantized as well",
        "`llm_int8_skip_modules` 没有列出 `lm_head`，输出层也会被量化",
    ),
    why: Text::new(
        "Your list replaces the default list instead of extending it. The default list keeps the output layer in 16 bits.",
        "这个列表会替换默认列表，而不是追加；默认列表会让输出层保持 16 位。",
    ),
    help: Text::new(
        "add `\"lm_head\"` to `llm_int8_skip_modules`",
        "在 `llm_int8_skip_modules` 里加上 `\"lm_head\"`",
    ),
};

static TOWER: Wording = Wording {
    message: Text::new(
        "`{entry}` in `llm_int8_skip_modules` matches no layer, so the vision tower is quantized",
        "`llm_int8_skip_modules` 里的 `{entry}` 匹配不到任何层，视觉塔仍会被量化",
    ),
    why: Text::new(
        "Since transformers 5, an entry must match a layer's name from its start or at its end. The layers of the vision tower are named `model.{entry}.…`.",
        "从 transformers 5 起，每一项必须从层名开头匹配，或匹配层名结尾；视觉塔的层名是 `model.{entry}.…`。",
    ),
    help: Text::new(
        "replace `\"{entry}\"` with `\"model.{entry}\"`",
        "把 `\"{entry}\"` 改为 `\"model.{entry}\"`",
    ),
};

/// What towers are called, and the classes of transformers that keep them below `model`. Others' classes have names of
/// their own.
const TOWERS: [(&str, &[&str]); 2] = [
    (
        "visual",
        &[
            "Qwen2VLForConditionalGeneration",
            "Qwen2_5_VLForConditionalGeneration",
            "Qwen3VLForConditionalGeneration",
        ],
    ),
    ("vision_tower", &["Gemma3ForConditionalGeneration", "LlavaForConditionalGeneration"]),
];

/// Classes whose models end in a layer over the vocabulary that is called `lm_head`.
const WITH_HEAD: [&str; 4] = [
    "AutoModelForCausalLM",
    "AutoModelForImageTextToText",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
];

/// Families whose output layer is called `lm_head`.
const FAMILIES: [&str; 4] = ["llama", "mistral", "mixtral", "qwen"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        for model in quantized_models(training.script) {
            let Some((entries, span)) = skipped(model.config) else { continue };
            if keeps_own_output_layer(&training, &model)
                && !entries.iter().any(|it| may_be_head(it))
            {
                found.at(&training.place(span), Diagnostic::new(&RULE, &HEAD, "", span));
            }
            for entry in entries.iter().filter(|entry| is_below_model(model.class(), entry)) {
                let diagnostic = Diagnostic::new(&RULE, &TOWER, "", span).with("entry", *entry);
                found.at(&training.place(span), diagnostic);
            }
        }
    }
}

/// The entries of the skip list, if all of them are written out and the model is quantized.
fn skipped(config: &Call) -> Option<(Vec<&str>, Span)> {
    let is_quantized = is_on(config, "load_in_4bit") || is_on(config, "load_in_8bit");
    let (Value::List(items), span) = config.keyword("llm_int8_skip_modules")? else { return None };
    let entries = items.iter().map(literal).collect::<Option<Vec<_>>>()?;
    is_quantized.then_some((entries, span))
}

fn is_below_model(class: &str, entry: &str) -> bool {
    TOWERS.iter().any(|(tower, classes)| *tower == entry && classes.contains(&class))
}

/// Whether an entry may mean the output layer; entries are regular expressions.
fn may_be_head(entry: &str) -> bool {
    ["head", "*", "|"].iter().any(|part| entry.contains(part))
}

/// Whether a model has an `lm_head` that does not share its weight with the embedding: a shared one stays in 16 bits.
fn keeps_own_output_layer(training: &Training<'_>, model: &Quantized<'_>) -> bool {
    let Some(name) = checkpoint(training, model.load).map(str::to_lowercase) else { return false };
    let sizes = name.split(['-', '_', '/']).filter_map(|part| part.strip_suffix('b')?.parse().ok());
    let smallest: Option<f64> = sizes.reduce(f64::min);
    WITH_HEAD.contains(&model.class())
        && FAMILIES.iter().any(|family| name.contains(family))
        // Smaller models of these families share it.
        && smallest.is_some_and(|size| size >= 7.0)
}
