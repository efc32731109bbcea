//! The line that ends a report.

use zeropilot_lint::{Diagnostic, Outcome, Report, Safety, Severity};
use zeropilot_text::{Language, Text, tr};

/// What was counted over all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files checked.
    pub files: usize,
    /// Files refused.
    pub rejected: usize,
    /// Files that load, and with which the run fails.
    pub failing: usize,
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Notes.
    pub notes: usize,
    /// Findings that are not told, since the baseline holds them.
    pub known: usize,
    /// Files refused without an error or a warning to say why, since rules are left out.
    pub unexplained: usize,
    /// Fixes that may be applied unseen.
    pub safe_fixes: usize,
    /// Findings that were put right.
    pub mended: usize,
    /// Files in which something was put right.
    pub mended_files: usize,
    /// Files found beside them that are no configs, and were left alone.
    pub others: usize,
    /// Launch scripts whose config is not known, or that launch nothing.
    pub without_config: usize,
    /// Files for which the number of ranks was assumed or inferred.
    pub without_world_size: usize,
}

impl Summary {
    /// Counts a file.
    pub fn count(&mut self, report: &Report) {
        self.files += 1;
        self.rejected += usize::from(report.outcome() == Outcome::Rejected);
        self.failing += usize::from(report.outcome() == Outcome::Fails);
        self.without_world_size +=
            usize::from(report.world.source != zeropilot_lint::WorldSource::Given);
        // A finding that the project tells as less than it is does not let a refused file pass.
        let is_grave = |found: &Diagnostic| {
            found.severity <= Severity::Warning && found.severity <= found.effect()
        };
        let is_explained = report.diagnostics.iter().chain(&report.known).any(is_grave);
        self.unexplained += usize::from(report.outcome() == Outcome::Rejected && !is_explained);
        self.known += report.known.len();
        self.mended += report.fixed.len();
        self.mended_files += usize::from(!report.fixed.is_empty());
        for diagnostic in &report.diagnostics {
            match diagnostic.severity {
                Severity::Error => self.errors += 1,
                Severity::Warning => self.warnings += 1,
                Severity::Note => self.notes += 1,
            }
            let is_safe = diagnostic.fix.as_ref().is_some_and(|fix| fix.safety == Safety::Safe);
            self.safe_fixes += usize::from(is_safe);
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.rejected += other.rejected;
        self.failing += other.failing;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
        self.known += other.known;
        self.unexplained += other.unexplained;
        self.safe_fixes += other.safe_fixes;
        self.mended += other.mended;
        self.mended_files += other.mended_files;
        self.others += other.others;
        self.without_config += other.without_config;
        self.without_world_size += other.without_world_size;
    }

    /// Whether something must be put right: findings of this severity or a worse one.
    pub fn has_findings(&self, mildest: Severity) -> bool {
        let counts = [
            (Severity::Error, self.errors),
            (Severity::Warning, self.warnings),
            (Severity::Note, self.notes),
        ];
        let has = |(severity, count)| severity <= mildest && count > 0;
        self.unexplained > 0 || counts.into_iter().any(has)
    }

    /// The summary in words.
    pub fn words(&self, language: Language) -> String {
        let accepted =
            self.files.saturating_sub(self.rejected + self.failing + self.without_config);
        let (total, rejected) = (self.files, self.rejected);
        let counts = [
            (self.errors, "error", "个错误"),
            (self.warnings, "warning", "个警告"),
            (self.notes, "note", "条提示"),
        ];
        let counts: Vec<String> = counts
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, en, zh)| {
                tr!(
                    language,
                    ("{count} {en}{}", if count == 1 { "" } else { "s" }),
                    ("{count} {zh}")
                )
            })
            .collect();
        let found = match counts.as_slice() {
            [] => tr!(language, "nothing found", "没有发现问题"),
            counts => counts.join(Text::new(", ", "，").get(language)),
        };
        let mended = match self.mended {
            0 => String::new(),
            1 => tr!(language, "1 finding fixed; ", "修复了 1 个问题；"),
            count => tr!(language, "{count} findings fixed; ", "修复了 {count} 个问题；"),
        };
        let fixable = match self.safe_fixes {
            0 => String::new(),
            count => tr!(language, " ({count} fixable with --fix)", "（--fix 可修复 {count} 个）"),
        };
        let known = match self.known {
            0 => String::new(),
            count => tr!(language, ", {count} in the baseline", "，基线中另有 {count} 个"),
        };
        let failing = match self.failing {
            0 => String::new(),
            1 => tr!(language, ", 1 loads but the run fails", "，1 个能加载但训练会失败"),
            count => {
                tr!(language, ", {count} load but the run fails", "，{count} 个能加载但训练会失败")
            }
        };
        let unknown = match self.without_config {
            0 => String::new(),
            count => {
                tr!(language, ", {count} without a config to check", "，{count} 个没有可检查的配置")
            }
        };
        let others = match self.others {
            0 => String::new(),
            count => tr!(
                language,
                ", {count} skipped (not a DeepSpeed config)",
                "，另有 {count} 个不是 DeepSpeed 配置，已跳过"
            ),
        };
        let files = if total == 1 { "file" } else { "files" };
        tr!(
            language,
            "{total} {files}: {accepted} accepted, {rejected} rejected{failing}{unknown}{others}; {mended}{found}{fixable}{known}\n",
            "共 {total} 个文件：{accepted} 个通过，{rejected} 个不通过{failing}{unknown}{others}；{mended}{found}{fixable}{known}\n"
        )
    }
}
