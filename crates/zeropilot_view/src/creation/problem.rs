//! Why a config could not be made or written.

use std::io;

use zeropilot_text::{Language, Text};

use crate::objection::Objection;

/// What stands in the way.
#[derive(Debug)]
pub enum CreationProblem {
    /// It already exists.
    Exists,
    /// It is a directory.
    IsDirectory,
    /// It is a device, a pipe or a socket.
    IsNoFile,
    /// The directory it is to be in is not there.
    NoDirectory,
    /// The system refuses.
    System(io::Error),
    /// Several files were asked for on standard output.
    TiersOnStandardOutput,
    /// The files of the model do not tell its width.
    ModelWithoutWidth,
}

impl CreationProblem {
    /// The problem with its file, in words that end with a line break.
    pub fn words(&self, name: &str, language: Language) -> String {
        self.objection().with("name", name).words(language)
    }

    fn objection(&self) -> Objection {
        match self {
            Self::Exists => Objection::new(
                Text::new("`{name}` already exists", "`{name}` 已经存在"),
                Text::new(
                    "By default, zeropilot does not overwrite existing files.",
                    "zeropilot 默认不覆盖已有的文件。",
                ),
                Text::new(
                    "add --force to replace the file, or name another file with -o",
                    "加上 --force 覆盖这个文件，或用 -o 换一个文件名",
                ),
            ),
            Self::IsDirectory => Objection::new(
                Text::new("`{name}` is a directory", "`{name}` 是一个目录"),
                Text::new("zeropilot writes the config to a file, not to a directory.", "配置要写进文件，不能写到目录上。"),
                Text::new("name a file in the directory: -o {name}/ds_config.json", "写明目录里的文件名：-o {name}/ds_config.json"),
            ),
            Self::IsNoFile => Objection::new(
                Text::new("`{name}` is a device or a pipe", "`{name}` 是设备或管道，不是普通文件"),
                Text::new(
                    "zeropilot replaces the old file in one step, which would remove the device or pipe.",
                    "zeropilot 写配置时直接替换原来的文件，这个设备或管道会因此被删除。",
                ),
                Text::new("name a file, or write to standard output with `-o -`", "换成文件名，或用 `-o -` 写到标准输出"),
            ),
            Self::NoDirectory => Objection::new(
                Text::new("the directory of `{name}` does not exist", "`{name}` 所在的目录不存在"),
                Text::new(
                    "If zeropilot created directories, a mistyped path would become a new directory.",
                    "如果 zeropilot 自动创建目录，路径打错时就会多出一个目录。",
                ),
                Text::new("create the directory with `mkdir -p`, or correct the path", "先用 `mkdir -p` 创建目录，或改正路径"),
            ),
            Self::System(error) => Objection::new(
                Text::new("`{name}` cannot be written: {reason}", "无法写入 `{name}`：{reason}"),
                Text::new(
                    "zeropilot first writes the config to a temporary file in the same directory, so that a failed \
                     write never leaves half a file.",
                    "配置会先写到同一目录下的临时文件，这样即使写入中断也不会留下半个文件。",
                ),
                Text::new(
                    "choose a writable directory with -o, or print the config with `-o -`",
                    "用 -o 换到有写权限的目录，或用 `-o -` 直接输出到终端",
                ),
            )
            .with("reason", error),
            Self::TiersOnStandardOutput => Objection::new(
                Text::new("--tiers writes three files, but standard output is a single stream", "--tiers 要写三个文件，而标准输出只有一个"),
                Text::new(
                    "Three concatenated configs are not valid JSON.",
                    "三份配置接在一起就不是合法的 JSON 了。",
                ),
                Text::new("name a file with -o, or add --json to get all three in one array", "用 -o 指定文件名，或加上 --json 把三份放进一个数组"),
            ),
            Self::ModelWithoutWidth => Objection::new(
                Text::new("the files of `{name}` do not give the width (hidden size) of the model", "从 `{name}` 的文件看不出模型的宽度（hidden size）"),
                Text::new(
                    "Bucket sizes depend on the hidden size, and zeropilot does not guess it.",
                    "通信桶大小由宽度决定，zeropilot 不作猜测。",
                ),
                Text::new(
                    "name a directory that contains config.json, or omit --model",
                    "改用含有 config.json 的目录，或去掉 --model",
                ),
            ),
        }
    }
}
