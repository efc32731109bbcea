//! What a config will ask of its machine.

use zeropilot_config::syntax::{Document, Node, Value};

/// What a run needs beside the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// The engine builds its Adam for the CPU on the first run.
    pub cpu_adam: bool,
    /// The engine builds its fused optimizer for the GPU on the first run; the name in the config.
    pub fused_optimizer: Option<String>,
    /// The engine builds its disk engine on the first run.
    pub async_io: bool,
    /// Directories it swaps to.
    pub nvme_paths: Vec<String>,
}

impl Needs {
    /// Reads them from a config as it is written.
    pub fn of(config: &Document) -> Self {
        let zero = config.get("zero_optimization");
        let section = |name: &str| zero.and_then(|zero| zero.get(name));
        let device = |name: &str| section(name).and_then(|section| text(section.get("device")?));
        let devices = ["offload_optimizer", "offload_param"].map(device);
        let optimizer = config.get("optimizer");
        let name = optimizer.and_then(|optimizer| text(optimizer.get("type")?));
        let is_torch = optimizer
            .and_then(|optimizer| optimizer.get("params")?.get("torch_adam"))
            .is_some_and(|node| node.value == Value::Bool(true));
        let on_host = matches!(devices[0], Some("cpu" | "nvme"));
        let fused = ["adam", "adamw", "lamb", "lion"];
        let is_built = |name: &&str| fused.contains(&name.to_lowercase().as_str()) && !is_torch;
        let swaps = zero.is_some_and(swaps);
        let paths = ["offload_optimizer", "offload_param"].iter().filter_map(|name| {
            let section = section(name)?;
            let is_used = swaps && text(section.get("device")?)? == "nvme";
            is_used.then(|| text(section.get("nvme_path")?))?
        });
        let mut nvme_paths: Vec<String> = paths.map(str::to_owned).collect();
        nvme_paths.dedup();
        Self {
            cpu_adam: on_host && !is_torch,
            fused_optimizer: name.filter(is_built).filter(|_| !on_host).map(str::to_owned),
            async_io: swaps && devices.contains(&Some("nvme")),
            nvme_paths,
        }
    }

    /// Whether anything is compiled on the first run.
    pub fn builds(&self) -> bool {
        self.cpu_adam || self.async_io || self.fused_optimizer.is_some()
    }
}

/// Whether a ZeRO section can use a disk: only stage 3 does, and below it `nvme` is the CPU. A stage that is not a
/// number, such as `"auto"`, may become 3.
fn swaps(zero: &Node) -> bool {
    match zero.get("stage").map(|stage| &stage.value) {
        None => false,
        Some(Value::Int(stage)) => i64::try_from(stage).is_ok_and(|stage| stage == 3),
        Some(_) => true,
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_config::syntax::parse_hjson;

    use super::*;

    fn needs(text: &str) -> Needs {
        Needs::of(&parse_hjson(text).expect("a config"))
    }

    #[test]
    fn offload_and_optimizers_ask_for_builds() {
        let plain = needs(r#"{"zero_optimization": {"stage": 3}}"#);
        assert!(!plain.builds());
        let cpu = needs(
            r#"{"optimizer": {"type": "AdamW"}, "zero_optimization": {"offload_optimizer": {"device": "cpu"}}}"#,
        );
        assert!(cpu.cpu_adam && cpu.fused_optimizer.is_none());
        let fused = needs(r#"{"optimizer": {"type": "AdamW"}}"#);
        assert_eq!(fused.fused_optimizer.as_deref(), Some("AdamW"));
        let torch = needs(r#"{"optimizer": {"type": "AdamW", "params": {"torch_adam": true}}}"#);
        assert!(!torch.builds());
        let nvme = needs(
            r#"{"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/x"},
                "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}}}"#,
        );
        assert!(nvme.async_io);
        assert_eq!(nvme.nvme_paths, ["/x"]);
    }

    #[test]
    fn only_stage_3_needs_a_disk() {
        let at = |stage: &str| {
            needs(&format!(
                r#"{{"zero_optimization": {{"stage": {stage},
                    "offload_optimizer": {{"device": "nvme", "nvme_path": "/x"}}}}}}"#
            ))
        };
        for stage in ["1", "2"] {
            let below = at(stage);
            assert!(below.cpu_adam && !below.async_io, "stage {stage}");
            assert!(below.nvme_paths.is_empty(), "stage {stage}");
        }
        for stage in ["3", "\"auto\""] {
            let disk = at(stage);
            assert!(disk.async_io, "stage {stage}");
            assert_eq!(disk.nvme_paths, ["/x"], "stage {stage}");
        }
    }
}
