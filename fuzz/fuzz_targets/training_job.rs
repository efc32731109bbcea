//! Any launch script beside any file, as the training jobs they describe: a line that a value comes from is there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_job::{Origin, Outside, TrainingJob, read};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (script, file) = text.split_once('\0').unwrap_or((text, text));
    let files = |_: &str| Some(file.to_owned());
    let launches = read(script, &Outside::default(), &files);
    for launch in &launches.launches {
        let job = TrainingJob::of_launch("job.sh", script, &launches, launch, &files);
        let origins = job.not_modelled.iter().map(|one| &one.origin);
        let origins = origins.chain(job.model.as_ref().map(|model| &model.origin));
        for origin in origins.chain(job.config.as_ref().map(|config| &config.origin)) {
            let Origin::File { name, line } = origin else { continue };
            let text = if name == "job.sh" { script } else { file };
            let lines = text.replace("\r\n", "\n").split(['\n', '\r']).count();
            assert!((1..=lines).contains(line), "{name}:{line} of {lines}");
        }
    }
});
