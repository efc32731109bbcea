//! The config that accelerate builds from its own fields: judged as a file is, with every finding where its field is written.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::problem::KeyPath;
use zeropilot_job::{Launch, Place};

use crate::key_values::is_within;

/// Keys of the config, and the fields that they come from; the first key that a path begins with counts.
const FIELDS: [(&str, &str); 11] = [
    ("gradient_accumulation_steps", "gradient_accumulation_steps"),
    ("gradient_clipping", "gradient_clipping"),
    ("zero_optimization.stage3_gather_16bit_weights_on_model_save", "zero3_save_16bit_model"),
    ("zero_optimization.stage", "zero_stage"),
    ("zero_optimization.offload_optimizer.nvme_path", "offload_optimizer_nvme_path"),
    ("zero_optimization.offload_optimizer", "offload_optimizer_device"),
    ("zero_optimization.offload_param.nvme_path", "offload_param_nvme_path"),
    ("zero_optimization.offload_param", "offload_param_device"),
    ("zero_optimization", "zero_stage"),
    ("fp16", "mixed_precision"),
    ("bf16", "mixed_precision"),
];

/// The config, where the program surely uses it.
pub(crate) fn of(launch: &Launch) -> Option<String> {
    let in_code = launch.script.as_ref().is_some_and(|script| script.calls("DeepSpeedPlugin"));
    let uses_other = launch.given.front_end == Some(FrontEnd::DeepSpeed) || in_code;
    if uses_other { None } else { launch.accelerate_config() }
}

/// Where the field is written that a key comes from; the place that switches DeepSpeed on for what is in no field.
pub(crate) fn place(launch: &Launch, path: &KeyPath) -> Place {
    let path = path.to_string();
    let field = FIELDS.iter().find(|(key, _)| is_within(&path, key)).map(|(_, field)| *field);
    let written = field.and_then(|field| launch.accelerate_field(field)).map(|said| said.place);
    written.unwrap_or_else(|| switch(launch))
}

/// Where DeepSpeed is switched on: `distributed_type` in accelerate's YAML, or the command itself.
pub(crate) fn switch(launch: &Launch) -> Place {
    let said = launch.distributed_type.as_ref().map(|said| said.place.clone());
    said.unwrap_or_else(|| Place::here(launch.span()))
}

#[cfg(test)]
mod tests {
    use zeropilot_job::Outside;
    use zeropilot_text::Language;

    use crate::job::{JobReport, builds_config, judge};
    use crate::{Settings, Verdict};

    const YAML: &str = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 4\nmixed_precision: bf16\n\
        deepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 1\n";

    fn judged(command: &str, files: &[(&str, &str)]) -> JobReport {
        let find = |name: &str| {
            let file = files.iter().find(|(known, _)| *known == name);
            file.map(|(_, text)| (*text).to_owned())
        };
        judge(command, &Outside::default(), &Settings::default(), &find)
    }

    /// Codes with the file and the text that they point to.
    fn found(report: &JobReport) -> Vec<(&'static str, &str, &str)> {
        let found = report.files.iter().flat_map(|file| {
            file.report.diagnostics.iter().map(|found| {
                let written = found.span.of(&file.text).unwrap_or("");
                (found.rule.code, file.name.as_deref().unwrap_or(""), written)
            })
        });
        found.collect()
    }

    #[test]
    fn fields_of_the_yaml_are_checked_as_a_config_and_found_where_they_are_written() {
        let command = "accelerate launch --config_file acc.yaml train.py";
        let script = "from transformers import Trainer, TrainingArguments\nargs = TrainingArguments(output_dir='o', bf16=True, optim='adafactor', gradient_accumulation_steps=8)\nTrainer(model, args).train()\n";
        let report = judged(command, &[("acc.yaml", YAML), ("train.py", script)]);
        assert_eq!(
            found(&report),
            [("A08", "train.py", "gradient_accumulation_steps=8"), ("O02", "acc.yaml", "cpu")]
        );
        assert!(report.is_certain_to_fail && report.files[0].report.verdict == Verdict::Reject);
        let told = report.files.iter().flat_map(|file| &file.report.diagnostics);
        assert!(told.clone().all(|found| found.fix.is_none() && found.related.is_empty()));
        let message = told.clone().next().map(|found| found.message(Language::English));
        let words = "`gradient_accumulation_steps` is 1, but the training argument `gradient_accumulation_steps` is 8";
        assert_eq!(message.as_deref(), Some(words));
        let launch = &report.job.launches[0];
        assert_eq!(builds_config(launch), Some(Some("acc.yaml")));

        let same = script.replace("=8", "=1").replace("adafactor", "adamw_torch");
        let report = judged(command, &[("acc.yaml", YAML), ("train.py", &same)]);
        assert_eq!(found(&report), []);
        assert_eq!(report.files[0].report.verdict, Verdict::Accept);
        // The stage is that of the fields for rules about the script, too.
        let gathering = format!("{same}print(model.state_dict())\n");
        assert_eq!(found(&judged(command, &[("acc.yaml", YAML), ("train.py", &gathering)])), []);
    }

    #[test]
    fn options_of_the_launcher_are_the_same_fields() {
        let script = "args = TrainingArguments(output_dir='o', optim='adafactor')\nTrainer(model, args).train()\n";
        let of = |options: &str| {
            let command =
                format!("accelerate launch --use_deepspeed --num_processes 2 {options} train.py");
            let report = judged(&command, &[("train.py", script)]);
            let codes: Vec<_> = found(&report).iter().map(|(code, ..)| *code).collect();
            (codes, report.job.launches.first().and_then(builds_config).is_some())
        };
        assert_eq!(of("--zero_stage 2 --offload_optimizer_device cpu"), (vec!["O02"], true));
        assert_eq!(of("--zero_stage 2"), (Vec::new(), true));
        // A field that only the run knows leaves the config open.
        let open = of("--zero_stage $STAGE --offload_optimizer_device cpu");
        assert_eq!(open, (Vec::new(), false));
    }

    #[test]
    fn a_config_that_the_fields_do_not_make_is_not_judged_by_them() {
        let command = "accelerate launch --config_file acc.yaml train.py";
        let own = "import deepspeed\nengine, _, _, _ = deepspeed.initialize(model=model, config=load())\n";
        let plugin = "plugin = DeepSpeedPlugin(zero_stage=3)\naccelerator = Accelerator(deepspeed_plugin=plugin)\n";
        for script in [own, plugin] {
            let report = judged(command, &[("acc.yaml", YAML), ("train.py", script)]);
            assert_eq!(builds_config(&report.job.launches[0]), None, "{script}");
        }
        // Beside a file the fields are refused, as before.
        let both = format!("{YAML}  deepspeed_config_file: ds.json\n");
        let config = r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#;
        let files =
            [("acc.yaml", both.as_str()), ("ds.json", config), ("train.py", "a = Accelerator()\n")];
        let report = judged("accelerate launch --config_file acc.yaml train.py", &files);
        assert!(found(&report).iter().any(|(code, ..)| *code == "I01"), "{:?}", found(&report));
    }
}
