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
        // Only zeropilot's own lock is told without a number of the system.
        ErrorKind::ResourceBusy if error.raw_os_error().is_none() => "另一次运行正在写入这个目录",
        ErrorKind::ResourceBusy | ErrorKind::ExecutableFileBusy => "文件正被占用",
        ErrorKind::AlreadyExists => "文件已存在",
        ErrorKind::FileTooLarge => "文件过大",
        ErrorKind::InvalidFilename => "文件名无效或过长",
        ErrorKind::ArgumentListTooLong => "命令的参数过长",
        ErrorKind::OutOfMemory => "主机内存不足",
        ErrorKind::BrokenPipe => "管道的另一端已关闭",
        ErrorKind::TimedOut => "超时",
        ErrorKind::AddrInUse => "地址已被占用",
        ErrorKind::AddrNotAvailable => "本机没有这个地址",
        ErrorKind::ConnectionRefused => "连接被拒绝",
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => "连接中断",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "网络不可达",
        _ => by_number(error.raw_os_error()),
    };
    match language {
        Language::Chinese if !known.is_empty() => known.to_owned(),
        _ => escaped(&error.to_string()).into_owned(),
    }
}

/// What only has a number of Linux.
fn by_number(number: Option<i32>) -> &'static str {
    match number {
        Some(5) => "输入输出错误",
        Some(6) => "没有这个设备",
        Some(8) => "不是可执行的程序",
        Some(11) => "暂时没有可用的资源",
        Some(24) => "打开的文件过多",
        Some(40) => "符号链接的层数过多",
        _ => "",
    }
}

/// What somebody else reported, with the system's words in it as [`failure`] says them, and those of processes and HTTP.
pub(crate) fn told(text: &str, language: Language) -> String {
    if language == Language::English {
        return text.to_owned();
    }
    let number = text.split_once("(os error ").and_then(|(_, rest)| rest.split(')').next());
    let error = number.and_then(|number| number.parse().ok()).map(Error::from_raw_os_error);
    let failed = error.map(|error| (error.to_string(), failure(&error, language)));
    let known = [
        ("exit status: ", "退出码 "),
        ("http status: ", "HTTP 状态码 "),
        ("host not found", "找不到主机"),
        ("timeout: global", "超时"),
    ];
    let known = known.map(|(english, chinese)| (english.to_owned(), chinese.to_owned()));
    failed.into_iter().chain(known).fold(text.to_owned(), |text, (english, chinese)| {
        let joined = format!("：{chinese}");
        let text = text.replace(&format!(": io: {english}"), &joined);
        text.replace(&format!(": {english}"), &joined).replace(&english, &chinese)
    })
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
        for number in [2, 5, 7, 8, 13, 24, 28, 40, 98, 99, 111] {
            let words = failure(&Error::from_raw_os_error(number), Language::Chinese);
            assert!(!words.contains("os error"), "{number}: {words}");
        }
        let own = Error::new(ErrorKind::ResourceBusy, "another run is writing to this directory");
        assert_eq!(failure(&own, Language::Chinese), "另一次运行正在写入这个目录");
    }

    #[test]
    fn what_others_report_has_no_english_words_of_the_system_in_chinese() {
        let error = Error::from_raw_os_error(2);
        let text = format!("no-such-program: {error}");
        assert_eq!(told(&text, Language::Chinese), "no-such-program：没有这个文件或目录");
        assert_eq!(told(&text, Language::English), text);
        let refused = format!("http://h: io: {}", Error::from_raw_os_error(111));
        assert_eq!(told(&refused, Language::Chinese), "http://h：连接被拒绝");
        assert_eq!(told("`x`: exit status: 3", Language::Chinese), "`x`：退出码 3");
    }
}
