//! What the names of the files in a checkpoint of the engine tell about the run that wrote it.
//!
//! Files are not opened; whoever lists the directory gives their names.

/// A checkpoint by its names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Parts of the optimizer's state: one for each rank that wrote it; 0 without ZeRO.
    pub shards: usize,
    /// Whether weights are in parts, as only stage 3 writes them.
    pub is_stage_3: bool,
    /// Whether the parts were written in bf16, where there are any.
    pub is_bf16: Option<bool>,
    /// Whether it was converted for any number of ranks.
    pub is_universal: bool,
}

impl Checkpoint {
    /// Reads the names beside and inside a checkpoint's directory; `None` if they are none of the
    /// engine's. Model parallelism splits files in ways that are not told apart here.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut found = Self::default();
        let mut is_ours = false;
        for name in names {
            if name == "latest_universal" {
                found.is_universal = true;
                is_ours = true;
            }
            if !name.contains("mp_rank_") {
                continue;
            }
            if !name.contains("mp_rank_00") {
                return None;
            }
            is_ours = true;
            if name.ends_with("_optim_states.pt") {
                found.shards += 1;
                found.is_bf16 = Some(name.starts_with("bf16_"));
            }
            found.is_stage_3 |=
                name.starts_with("zero_pp_rank_") && name.ends_with("_model_states.pt");
        }
        is_ours.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_stage_ranks_and_precision() {
        let stage_2 = [
            "mp_rank_00_model_states.pt",
            "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
        ];
        let found = Checkpoint::from_names(stage_2).expect("a checkpoint");
        assert_eq!((found.shards, found.is_stage_3, found.is_bf16), (2, false, Some(true)));
        let stage_3 = [
            "zero_pp_rank_0_mp_rank_00_model_states.pt",
            "zero_pp_rank_0_mp_rank_00_optim_states.pt",
        ];
        let found = Checkpoint::from_names(stage_3).expect("a checkpoint");
        assert_eq!((found.shards, found.is_stage_3, found.is_bf16), (1, true, Some(false)));
        assert_eq!(Checkpoint::from_names(["model.safetensors"]), None);
        assert_eq!(Checkpoint::from_names(["mp_rank_01_model_states.pt"]), None);
    }
}
