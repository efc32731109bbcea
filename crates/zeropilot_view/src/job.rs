//! Why a file gives no job, and what to do then.

use zeropilot_ask::UnreadableConfig;
use zeropilot_job::local::JobProblem;
use zeropilot_job::{FileKind, TrainingJob};
use zeropilot_text::{Language, Text, tr};

use crate::{escaped, provenance, system};

/// What a file is, in a few words.
pub fn kind(kind: FileKind) -> Text {
    match kind {
        FileKind::DeepSpeedConfig => Text::new("a DeepSpeed config", "DeepSpeed 配置"),
        FileKind::ModelConfig => Text::new("a model's config.json", "模型的 config.json"),
        FileKind::BesideModel => Text::new(
            "a file that belongs to a model or a checkpoint",
            "模型或 checkpoint 的附属文件",
        ),
        FileKind::LaunchScript => Text::new("a shell script", "shell 脚本"),
        FileKind::TrainingScript => Text::new("a Python program", "Python 程序"),
        FileKind::Accelerate => Text::new("an accelerate config", "accelerate 配置"),
        FileKind::LlamaFactory => Text::new("a LLaMA-Factory job", "LLaMA-Factory 任务"),
        FileKind::Axolotl => Text::new("an axolotl job", "axolotl 任务"),
        FileKind::Swift => Text::new("an ms-swift job", "ms-swift 任务"),
        FileKind::Other => Text::new("another kind of file", "其他文件"),
    }
}

/// Why a file gives no job.
pub fn problem(name: &str, problem: &JobProblem, language: Language) -> String {
    let name = escaped(name);
    match problem {
        JobProblem::Unreadable(error) => {
            let reason = system::failure(error, language);
            tr!(
                language,
                "error: {name} cannot be read: {reason}\n  help: check the path; a job is a launch script, a training script, a framework's YAML file or a DeepSpeed config",
                "错误：无法读取 {name}：{reason}\n  建议：检查路径；任务可以是启动脚本、训练脚本、训练框架的 YAML 或 DeepSpeed 配置"
            )
        }
        JobProblem::NotAJob(of) => {
            let is = kind(*of).get(language);
            tr!(
                language,
                "error: {name} is not a training job but {is}\n  help: pass a launch script, a training script, a framework's YAML file or a DeepSpeed config",
                "错误：{name} 不是训练任务，而是{is}\n  建议：请给出启动脚本、训练脚本、训练框架的 YAML 或 DeepSpeed 配置"
            )
        }
        JobProblem::NoLaunch(of) => {
            let is = kind(*of).get(language);
            tr!(
                language,
                "error: zeropilot finds no DeepSpeed training in {name} ({is})\n  help: pass the DeepSpeed config with --config and the model with --model",
                "错误：在 {name}（{is}）里没有找到用 DeepSpeed 启动的训练\n  建议：用 --config 给出 DeepSpeed 配置，用 --model 给出模型"
            )
        }
        JobProblem::Unread(framework) => tr!(
            language,
            "error: {name} trains with {framework}, which zeropilot does not support: it reads neither its arguments nor its configuration\n  help: to predict the same training with DeepSpeed, describe it with --model, --stage, --micro-batch and --seq-len instead of this file",
            "错误：{name} 用 {framework} 训练，zeropilot 不支持它，不读取它的参数和配置\n  建议：如要预测改用 DeepSpeed 的同一训练，请不要给出这个文件，用 --model、--stage、--micro-batch 和 --seq-len 描述"
        ),
        JobProblem::WhichLaunch { wanted, launches } => {
            let list: String = launches
                .iter()
                .enumerate()
                .map(|(index, (line, text))| {
                    format!("\n  --launch {}  {name}:{line}  {}", index + 1, escaped(text))
                })
                .collect();
            let count = launches.len();
            let runs = if count == 1 { "run" } else { "runs" };
            match wanted {
                None => tr!(
                    language,
                    "error: {name} starts {count} {runs}; choose one:{list}",
                    "错误：{name} 启动了 {count} 次训练，请选择一次：{list}"
                ),
                Some(wanted) => tr!(
                    language,
                    "error: {name} starts {count} {runs}, so there is no run {wanted}:{list}",
                    "错误：{name} 只启动了 {count} 次训练，没有第 {wanted} 次：{list}"
                ),
            }
        }
        JobProblem::Directory(found) if found.is_empty() => tr!(
            language,
            "error: {name} has no launch script, framework YAML or DeepSpeed config\n  help: pass the file that starts the training",
            "错误：{name} 里没有启动脚本、训练框架的 YAML 或 DeepSpeed 配置\n  建议：给出启动训练的文件"
        ),
        JobProblem::Directory(found) => {
            let list: String = found
                .iter()
                .map(|path| format!("\n  {}", escaped(&path.to_string_lossy())))
                .collect();
            tr!(
                language,
                "error: {name} has {} jobs; pass one of them:{list}",
                "错误：{name} 里有 {} 个任务，请给出其中一个：{list}",
                found.len()
            )
        }
    }
}

/// That a job has no config to explain: none that shows, or one that cannot be read.
pub fn nothing_to_explain(
    name: &str,
    unreadable: Option<&UnreadableConfig>,
    language: Language,
) -> String {
    let name = escaped(name);
    let why = match unreadable {
        Some(problem) => provenance::unreadable(problem, language),
        None => tr!(
            language,
            "error: zeropilot finds no DeepSpeed config in {name}",
            "错误：在 {name} 里没有找到 DeepSpeed 配置"
        ),
    };
    tr!(
        language,
        "{why}\n  help: run zeropilot explain ds_config.json to explain the config itself",
        "{why}\n  建议：运行 zeropilot explain ds_config.json 解释配置文件本身"
    )
}

/// That a job names no model.
pub fn no_model(name: &str, job: &TrainingJob, language: Language) -> String {
    let name = escaped(name);
    if job.unknown.contains(&"model") {
        return tr!(
            language,
            "error: {name} sets its model at run time\n  help: name the model with --model",
            "错误：{name} 的模型在运行时才确定\n  建议：用 --model 指定模型"
        );
    }
    tr!(
        language,
        "error: zeropilot finds no model in {name}\n  help: name the model with --model",
        "错误：在 {name} 里没有找到模型\n  建议：用 --model 指定模型"
    )
}
