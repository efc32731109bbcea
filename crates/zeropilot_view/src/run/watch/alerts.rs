//! What deserves attention now.

use zeropilot_text::{Language, tr};
use zeropilot_units::Bytes;

use super::Look;
use crate::run::clock;

/// Silence between steps that is worth a word: this many times the usual, but not less than the seconds.
const SLOW: (f64, f64) = (10.0, 60.0);

/// Percent of a GPU from which on it is called full.
const FULL: f64 = 97.0;

/// Each in a few words.
pub fn alerts(look: &Look, language: Language) -> Vec<String> {
    let mut alerts = Vec::new();
    for (rank, state) in &look.digest.ranks {
        let over = look.info.predicted.and_then(|most| state.level().peak.checked_sub(most));
        if let Some(over) = over.filter(|over| *over > 0) {
            alerts.push(tr!(
                language,
                "rank {rank}: {} above the prediction",
                "rank {rank}：超出预测 {}",
                Bytes(over)
            ));
        }
    }
    for gpu in look.digest.gpus.iter().filter(|gpu| gpu.total > 0) {
        let percent = gpu.used as f64 / gpu.total as f64 * 100.0;
        if percent >= FULL {
            alerts.push(tr!(
                language,
                "GPU {}: {percent:.0}% of memory used",
                "GPU {}：显存已用 {percent:.0}%",
                gpu.index
            ));
        }
    }
    let digest = &look.digest;
    if let (true, Some(at), Some(rate)) = (look.is_running, digest.step_at, digest.rates.last()) {
        let silence = look.now - at;
        if rate > 0.0 && silence > SLOW.1.max(SLOW.0 / rate) {
            let silence = clock(silence as u64);
            alerts.push(tr!(language, "no step for {silence}", "已有 {silence} 没有完成新的一步"));
        }
    }
    alerts
}
