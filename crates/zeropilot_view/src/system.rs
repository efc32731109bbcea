//! What the operating system says about files, in both languages.

use std::io::{Error, ErrorKind};

use zeropilot_text::{Language, tr};

use crate::escaped;

/// Why reading or writing failed. English keeps the system's own words; what Chinese has no words for here stays as the
/// system says it.
pub fn failure(error: &Error, language: Language) -> String {
    let known = match error.kind() {
        ErrorKind::NotFound => "没有这个文件或目录",
        ErrorKind::PermissionDenied => "没有权限",
        ErrorKind::IsADirectory => "这是一个目录",
        ErrorKind::NotADirectory => "路径中有一段不是目录",
        ErrorKind::StorageFull => "磁盘空间已满",
        ErrorKind::QuotaExceeded => "超出磁盘配额",
        ErrorKind::ReadOnlyFilesystem => "文件系统是只读的",
        ErrorKind::InvalidData => "内容不是 UTF-8 文本",
        _ => "",
    };
    match language {
        Language::Chinese if !known.is_empty() => known.to_owned(),
        _ => escaped(&error.to_string()).into_owned(),
    }
}

/// That results did not reach standard output.
pub fn results_lost(error: &Error, language: Language) -> String {
    let why = failure(error, language);
    tr!(
        language,
        "error: cannot write the results to standard output: {why}\n  help: the output is incomplete; free disk space, or write elsewhere",
        "错误：结果无法写到标准输出：{why}\n  建议：已写出的内容不完整，请腾出空间或换个位置"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_meet_most_is_said_in_chinese() {
        for kind in [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::StorageFull] {
            assert!(!failure(&kind.into(), Language::Chinese).is_ascii(), "{kind:?}");
            assert!(failure(&kind.into(), Language::English).is_ascii(), "{kind:?}");
        }
    }
}
