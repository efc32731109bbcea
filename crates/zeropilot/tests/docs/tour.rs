//! The picture of a terminal in the READMEs: commands with their output and colours, as SVG.

use anstyle_svg::Term;
use zeropilot_text::Language;

use crate::commands::run;

/// A config from which the tour starts.
const CONFIG: &str = r#"{
  "train_batch_size": 64,
  "gradient_accumulation_steps": 32,
  "zero_optimization": { "stage": 3 }
}
"#;

const COMMANDS: [&str; 3] = [
    "zeropilot check ds_config.json --world-size 4",
    "zeropilot memory --model Qwen/Qwen3-8B --gpus 5x44GB --seq-len 4096 --grad-checkpointing",
    "zeropilot simulate --model Qwen/Qwen3-8B --gpus 4x8xA100-80G --network 1x100GbE --seq-len 4096 --grad-checkpointing",
];

/// The tour as a picture.
pub(crate) fn picture(language: Language) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("ds_config.json"), CONFIG).expect("a writable directory");
    let locale = if language == Language::Chinese { "zh_CN.UTF-8" } else { "C.UTF-8" };
    let mut text = String::new();
    for command in COMMANDS {
        let (output, code) = run(&format!("{command} --color always"), directory.path(), locale);
        assert!(matches!(code, Some(0 | 1)), "{command}: {code:?}");
        text.push_str(&format!(
            "\u{1b}[1;32m$\u{1b}[0m \u{1b}[1m{command}\u{1b}[0m\n{}\n\n",
            output.trim_end()
        ));
    }
    // The same text must give the same file whatever the version of the crate says about line ends.
    Term::new().render_svg(text.trim_end()).trim_end().to_owned() + "\n"
}
