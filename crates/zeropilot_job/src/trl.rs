//! TRL's own command line: `trl sft` starts `accelerate launch` with a script and with accelerate configs that TRL ships
//! (`trl/cli/commands/training.py`, `trl/cli/accelerate_config.py`).

use crate::script::Files;
use crate::shell::Word;
use crate::yaml;

/// The subcommands that train, and what their scripts build.
const SCRIPTS: [(&str, &str, &str); 6] = [
    ("sft", "SFTConfig", "SFTTrainer"),
    ("dpo", "DPOConfig", "DPOTrainer"),
    ("grpo", "GRPOConfig", "GRPOTrainer"),
    ("kto", "KTOConfig", "KTOTrainer"),
    ("reward", "RewardConfig", "RewardTrainer"),
    ("rloo", "RLOOConfig", "RLOOTrainer"),
];

/// Options that TRL hands to accelerate, because no class of arguments has them.
const OF_LAUNCHER: [&str; 22] = [
    "config_file",
    "deepspeed_config_file",
    "dynamo_backend",
    "fsdp_version",
    "gpu_ids",
    "gradient_clipping",
    "machine_rank",
    "main_process_ip",
    "main_process_port",
    "mixed_precision",
    "multi_gpu",
    "num_machines",
    "num_processes",
    "offload_optimizer_device",
    "offload_param_device",
    "rdzv_backend",
    "same_network",
    "use_deepspeed",
    "use_fsdp",
    "zero3_init_flag",
    "zero3_save_16bit_model",
    "zero_stage",
];

/// The option that names an accelerate config: a file, or one that TRL ships.
const CONFIG: &str = "accelerate_config";

/// Where TRL ships them.
const CONFIGS: &str = "trl/accelerate_configs/";

/// The text of a file that TRL ships, as far as a job needs it.
pub(crate) fn shipped(name: &str) -> Option<String> {
    if let Some(config) = name.strip_prefix(CONFIGS) {
        let text = match config {
            "zero1.yaml" => const { zeropilot_knowledge::text("recipes/trl/zero1.yaml") },
            "zero2.yaml" => const { zeropilot_knowledge::text("recipes/trl/zero2.yaml") },
            "zero3.yaml" => const { zeropilot_knowledge::text("recipes/trl/zero3.yaml") },
            _ => return None,
        };
        return Some(text.to_owned());
    }
    let name = name.strip_prefix("trl/scripts/")?.strip_suffix(".py")?;
    let (_, arguments, trainer) = SCRIPTS.iter().find(|(known, ..)| *known == name)?;
    Some(format!(
        "from trl import ModelConfig, ScriptArguments, {arguments}, {trainer}, TrlParser\n\
         parser = TrlParser((ScriptArguments, {arguments}, ModelConfig))\n\
         script_args, training_args, model_args = parser.parse_args_and_config()\n\
         trainer = {trainer}(model=model_args.model_name_or_path, args=training_args)\n\
         trainer.train()\n"
    ))
}

/// The script behind `python -m trl.scripts.sft`.
pub(crate) fn script_of(module: &str) -> Option<String> {
    let name = module.strip_prefix("trl.scripts.")?;
    SCRIPTS.iter().any(|(known, ..)| *known == name).then(|| format!("trl/scripts/{name}.py"))
}

/// The words of the `accelerate launch` that a `trl` command starts.
pub(crate) fn launch_words(words: &[Word], files: Files<'_>) -> Option<Vec<Word>> {
    let text = |index: usize| words.get(index).and_then(|word| word.text.as_deref());
    let is_trl = |index: &usize| text(*index).and_then(|it| it.rsplit('/').next()) == Some("trl");
    let start = (0..words.len()).find(is_trl)?;
    let name = text(start + 1)?;
    let script = script_of(&format!("trl.scripts.{name}"))?;
    let place = words[start].span;
    let word = |text: &str| Word { text: Some(text.to_owned()), option: None, span: place };
    let (mut launcher, mut program) = (vec![word("accelerate"), word("launch")], Vec::new());
    let rest = &words[start + 2..];
    launcher.extend(of_settings(rest, files, &word));
    let mut index = 0;
    while let Some(first) = rest.get(index) {
        let name = first.text.as_deref().and_then(|text| text.strip_prefix("--"));
        let has_value = rest
            .get(index + 1)
            .is_some_and(|next| next.text.as_deref().is_none_or(|text| !text.starts_with("--")));
        let part = &rest[index..=index + usize::from(name.is_some() && has_value)];
        index += part.len();
        let bare = name.and_then(|name| name.split('=').next()).unwrap_or_default();
        match (bare, part) {
            (CONFIG, [_, value]) => launcher.extend([word("--config_file"), config(value, files)]),
            (bare, _) if OF_LAUNCHER.contains(&bare) => launcher.extend_from_slice(part),
            _ => program.extend_from_slice(part),
        }
    }
    launcher.push(word(&script));
    launcher.append(&mut program);
    Some([words[..start].to_vec(), launcher].concat())
}

/// What the YAML behind `--config` hands to accelerate; the command line wins over it.
fn of_settings(rest: &[Word], files: Files<'_>, word: &dyn Fn(&str) -> Word) -> Vec<Word> {
    let named = rest.windows(2).find(|pair| pair[0].text.as_deref() == Some("--config"));
    let text = named.and_then(|pair| files(pair[1].text.as_deref()?)).unwrap_or_default();
    let entries = yaml::scalars(&text).into_iter();
    let words = entries.flat_map(|entry| match entry.key.as_str() {
        CONFIG => vec![word("--config_file"), config(&word(&entry.value), files)],
        key if OF_LAUNCHER.contains(&key) => vec![word(&format!("--{key}")), word(&entry.value)],
        _ => Vec::new(),
    });
    words.collect()
}

/// The accelerate config that a name means: a file, else one that TRL ships.
fn config(named: &Word, files: Files<'_>) -> Word {
    let text = named.text.clone().map(|name| match files(&name) {
        Some(_) => name,
        None => format!("{CONFIGS}{name}.yaml"),
    });
    Word { text, option: None, span: named.span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trl_starts_accelerate_with_configs_that_it_ships() {
        let files = |name: &str| match name {
            "s.yaml" => Some("model_name_or_path: m\nnum_processes: 4\nbf16: true\n".to_owned()),
            "own.yaml" => shipped("trl/accelerate_configs/zero2.yaml"),
            _ => None,
        };
        for (text, world, stage) in [
            ("trl sft --config s.yaml --accelerate_config zero3", 4, "3"),
            ("uv run trl dpo --accelerate_config zero1 --bf16 --num_processes 2 --lr 1", 2, "1"),
            ("trl grpo --accelerate_config own.yaml --model_name_or_path m", 8, "2"),
            (
                "python -m accelerate.commands.launch --config_file own.yaml -m trl.scripts.kto",
                8,
                "2",
            ),
        ] {
            let script = crate::read(text, &Default::default(), &files);
            let launch = &script.launches[0];
            assert_eq!(launch.world, Some(world), "{text}");
            let field = launch.accelerate_field("zero_stage").expect("a stage");
            assert_eq!(field.value, stage, "{text}");
            assert!(launch.script.as_ref().is_some_and(|it| it.calls("TrlParser")), "{text}");
            let model = launch.given.value("model_name_or_path");
            assert_eq!(model.is_some(), text.contains("s.yaml") || text.contains(" m"), "{text}");
        }
    }
}
