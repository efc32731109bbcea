//! Launch scripts and everything they name: whatever the texts, there is an answer, and every place
//! lies in the text it speaks of.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_lint::Settings;
use zeropilot_lint::job::judge;

/// The text as a shell script, and as each kind of file that a script can name.
const SCRIPTS: [&str; 5] = [
    "torchrun --nproc_per_node 2 any.py --batch 2",
    "deepspeed --num_gpus 2 any.py --deepspeed --deepspeed_config any.json",
    "llamafactory-cli train any.yaml",
    "accelerate launch --config_file any.yaml any.py",
    "deepspeed --hostfile any any.py --deepspeed any.json",
];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files = |_: &str| Some(text.to_owned());
    for script in SCRIPTS.into_iter().chain([text]) {
        for file in judge(script, &Settings::default(), &files).files {
            for found in &file.report.diagnostics {
                assert!(file.text.get(found.span.start..found.span.end).is_some(), "{found:?}");
            }
        }
    }
});
