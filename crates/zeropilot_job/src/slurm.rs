//! What a Slurm script asks for in its `#SBATCH` lines, as the variables its commands see.

use std::collections::HashMap;

use crate::shell::Outside;

/// Variables that Slurm sets from what the script asks for, where that is a plain number.
pub(crate) fn variables(text: &str) -> Outside {
    let mut found = HashMap::new();
    for line in text.lines() {
        // Slurm stops reading at the first command.
        if !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
        let Some(options) = line.strip_prefix("#SBATCH") else { continue };
        let words: Vec<&str> = options.split_whitespace().collect();
        for (index, word) in words.iter().enumerate() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*word, words.get(index + 1).copied()),
            };
            let Some(value) = value.and_then(number) else { continue };
            for variable in variables_of(name) {
                found.insert((*variable).to_owned(), Some(value.clone()));
            }
        }
    }
    found
}

/// What options set. A range of nodes is settled only when the job starts.
fn variables_of(option: &str) -> &'static [&'static str] {
    match option {
        "--nodes" | "-N" => &["SLURM_NNODES", "SLURM_JOB_NUM_NODES"],
        "--ntasks-per-node" => &["SLURM_NTASKS_PER_NODE"],
        "--ntasks" | "-n" => &["SLURM_NTASKS", "SLURM_NPROCS"],
        "--gpus-per-node" | "--gres" => &["SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"],
        _ => &[],
    }
}

/// The number in `8`, `a100:8` or `gpu:a100:8`.
fn number(value: &str) -> Option<String> {
    let last = value.rsplit(':').next()?;
    let is_other = value.contains(':') && value.starts_with("gpu:") && value.contains(',');
    (!is_other && last.parse::<usize>().is_ok()).then(|| last.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_what_commands_see() {
        let text = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node 1\n#SBATCH --gres=gpu:a100:8\n\n#SBATCH -n 16\nsrun x\n#SBATCH --nodes=4\n";
        let found = variables(text);
        let value = |name: &str| found.get(name).cloned().flatten();
        assert_eq!(value("SLURM_NNODES").as_deref(), Some("2"));
        assert_eq!(value("SLURM_GPUS_ON_NODE").as_deref(), Some("8"));
        assert_eq!(value("SLURM_NTASKS").as_deref(), Some("16"));
        assert!(variables("#SBATCH --nodes=2-4\n").is_empty());
    }
}
