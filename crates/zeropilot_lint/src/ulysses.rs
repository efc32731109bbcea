//! Sequence parallelism (Ulysses) as launches and training scripts ask for it.

use zeropilot_job::{Call, Launch, Launcher, Place, PythonScript, Value};

/// What a launch says of ranks that share a sequence.
pub(crate) struct Ulysses {
    /// How many share one; more than one.
    pub(crate) ranks: usize,
    /// Where that is said.
    pub(crate) place: Place,
    /// The attention that runs between the exchanges, where it is said, and where.
    pub(crate) attention: Option<(String, Place)>,
    /// Whether accelerate sets it up.
    pub(crate) by_accelerate: bool,
    /// Whether the engine is handed the groups (`mpu`).
    pub(crate) reaches_engine: bool,
}

/// What accelerate's options and the section of its file are called by.
const OPTION: &str = "parallelism_config_";
const SECTION: &str = "parallelism_config.parallelism_config_";

/// The arrangement of a launch; `None` if ranks share nothing, or if nobody says how many do.
pub(crate) fn of_launch(launch: &Launch) -> Option<Ulysses> {
    by_launcher(launch).or_else(|| by_script(launch.script.as_ref()?, launch.program.as_ref()?))
}

/// The options of accelerate's launcher that it does not hand on, by name; empty if it does.
pub(crate) fn dropped_options(launch: &Launch) -> Vec<&str> {
    if launch.launcher != Launcher::Accelerate || is_handed_on(launch) {
        return Vec::new();
    }
    let options = launch.options.iter().map(|(name, _)| name.as_str());
    options.filter(|name| name.starts_with(OPTION)).collect()
}

/// accelerate hands its section on where its file has one and the file is what asks for DeepSpeed.
fn is_handed_on(launch: &Launch) -> bool {
    let has_section = launch.given.values.iter().any(|said| said.name.starts_with(SECTION));
    has_section && !launch.has_option(&["use_deepspeed", "multi_gpu", "use_fsdp"])
}

fn by_launcher(launch: &Launch) -> Option<Ulysses> {
    if launch.launcher != Launcher::Accelerate || !is_handed_on(launch) {
        return None;
    }
    let said = |name: &str| {
        if let Some(word) = launch.option(&format!("{OPTION}{name}")) {
            return Some((word.text.clone()?, Place::here(word.span)));
        }
        let said = launch.given.said(&format!("{SECTION}{name}"))?;
        Some((said.value.clone(), said.place.clone()))
    };
    let (ranks, place) = said("sp_size")?;
    Some(Ulysses {
        ranks: several(&ranks)?,
        place: place.clone(),
        // The launcher's own default.
        attention: Some(said("sp_attn_implementation").unwrap_or(("sdpa".to_owned(), place))),
        by_accelerate: true,
        reaches_engine: true,
    })
}

fn by_script(script: &PythonScript, name: &str) -> Option<Ulysses> {
    let literal = |call: &Call, keyword: &str| match call.keyword(keyword)? {
        (Value::Literal(text), span) => Some((text.clone(), Place::in_file(name, span))),
        _ => None,
    };
    let find = |callee: &str, keyword: &str| {
        let call = script.calls.iter().find(|call| call.name() == callee)?;
        Some((several(&literal(call, keyword)?.0)?, call))
    };
    if let Some((ranks, call)) = find("register_with_transformers", "sequence_parallel_size") {
        let hands = |call: &&Call| call.name() == "initialize" && call.keyword("mpu").is_some();
        return Some(Ulysses {
            ranks,
            place: Place::in_file(name, call.span),
            attention: literal(call, "core_attn_implementation"),
            by_accelerate: false,
            reaches_engine: script.calls.iter().any(|call| hands(&call)),
        });
    }
    let (ranks, call) = find("ParallelismConfig", "sp_size")?;
    let mut handlers =
        script.calls.iter().filter(|call| call.name() == "DeepSpeedSequenceParallelConfig");
    Some(Ulysses {
        ranks,
        place: Place::in_file(name, call.span),
        attention: handlers.find_map(|call| literal(call, "sp_attn_implementation")),
        by_accelerate: true,
        reaches_engine: true,
    })
}

fn several(size: &str) -> Option<usize> {
    size.parse().ok().filter(|size| *size > 1)
}
