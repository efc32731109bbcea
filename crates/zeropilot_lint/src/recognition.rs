//! Which files are configs of the engine, by name and by what stands in them: editors and searches through directories
//! meet much other JSON.

/// `ds_*.json`, `*deepspeed*.json`, `zero*.json`; of a path or an address.
pub fn has_name_of_config(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    let Some(stem) =
        [".json", ".hjson", ".jsonc"].iter().find_map(|ending| name.strip_suffix(ending))
    else {
        return false;
    };
    stem.starts_with("ds_") || stem.starts_with("zero") || stem.contains("deepspeed")
}

/// What every config says something of; beginnings, as names are misspelt.
const BEGINNINGS: [&str; 7] = [
    "zero_opt",
    "train_batch",
    "train_micro",
    "gradient_accumulation_step",
    "stage3_",
    "offload_optim",
    "offload_param",
];

/// Whether a text may be a config, readable or not.
pub fn may_be_config(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.contains(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_json_of_a_repository_is_no_config() {
        assert!(may_be_config("{\"train_batchsize\": 8,"));
        assert!(!may_be_config("{\"name\": \"page\", \"version\": \"1.0.0\"}"));
        assert!(!may_be_config("{\"hidden_size\": 4096, \"torch_dtype\": \"bfloat16\"}"));
        assert!(has_name_of_config("configs/ds_z3.json") && !has_name_of_config("package.json"));
    }
}
