//! What to change in the files of a job, in words.

use serde_json::Value;
use zeropilot_ask::{ArgumentChange, Changes, ConfigChange};
use zeropilot_job::{JobConfig, Origin, TrainingJob};
use zeropilot_text::{Language, Text, tr};

use crate::{escaped, provenance};

/// "train.sh:3: per_device_train_batch_size 2 -> 4".
pub fn argument(
    change: &ArgumentChange,
    config: Option<&JobConfig>,
    is_patched: bool,
    language: Language,
) -> String {
    let name = change.name.unwrap_or_else(|| provenance::words(change.field, language));
    let to = &change.to;
    let by_hand = match is_patched {
        true => "",
        false => Text::new(" (by hand)", "（需手动修改）").get(language),
    };
    let line = match &change.now {
        Some(now) if matches!(now.origin, Origin::File { .. }) => {
            let place = provenance::origin(&now.origin, language);
            tr!(language, "{place}: {name} {} -> {to}", "{place}：{name} {} -> {to}", now.value)
        }
        now => {
            let place = config.map(|config| provenance::origin(&config.origin, language));
            let place =
                place.map_or_else(String::new, |place| tr!(language, "{place}: ", "{place}："));
            let now = now.as_ref().map_or(Value::Null, |now| now.value.clone());
            match now {
                Value::Null => {
                    tr!(language, "{place}add {name} = {to}", "{place}添加 {name} = {to}")
                }
                now => tr!(
                    language,
                    "{place}add {name} = {to} (default: {now})",
                    "{place}添加 {name} = {to}（默认 {now}）"
                ),
            }
        }
    };
    format!("{line}{by_hand}\n")
}

/// What to change before the job is started as before.
pub(super) fn of_job(
    job: &TrainingJob,
    changes: &Changes,
    has_patch: bool,
    strategy: &str,
    language: Language,
) -> String {
    if changes.is_empty() {
        return format!("\n{}\n", nothing(language));
    }
    let head = match has_patch {
        true => Text::new(
            "\nChange the job (--diff prints the patch), then start it as before:\n",
            "\n修改任务（--diff 输出补丁），然后照原来的方式启动：\n",
        ),
        false => Text::new(
            "\nChange the job by hand, then start it as before:\n",
            "\n手动修改任务，然后照原来的方式启动：\n",
        ),
    };
    let config = match (&changes.config, &job.config) {
        (ConfigChange::Nothing, _) => String::new(),
        (ConfigChange::Text(_), Some(JobConfig { name, .. })) => {
            let name = escaped(name);
            tr!(
                language,
                "{name}: zero_optimization for {strategy}\n",
                "{name}：zero_optimization 改为 {strategy}\n"
            )
        }
        (_, config) => config_by_hand(config.as_ref(), language),
    };
    let arguments = changes.arguments.iter();
    let lines = arguments.map(|change| argument(change, job.config.as_ref(), true, language));
    let lines: String = [config]
        .into_iter()
        .chain(lines)
        .filter(|line| !line.is_empty())
        .map(|line| format!("  {line}"))
        .collect();
    format!("{}{lines}", head.get(language))
}

/// That the config is no file that can be edited.
pub fn config_by_hand(config: Option<&JobConfig>, language: Language) -> String {
    match config {
        Some(config) => {
            let place = provenance::origin(&config.origin, language);
            let name = escaped(&config.name);
            tr!(
                language,
                "{place}: the DeepSpeed config ({name}) is not an editable file; write the recommended config with -o ds_config.json and name that file here\n",
                "{place}：DeepSpeed 配置（{name}）不是可以编辑的文件；用 -o ds_config.json 写出推荐配置，再在这里引用\n"
            )
        }
        None => tr!(
            language,
            "the job does not name a DeepSpeed config; write the recommended config with -o ds_config.json and pass it to the training program\n",
            "任务没有指定 DeepSpeed 配置；用 -o ds_config.json 写出推荐配置，再传给训练程序\n"
        ),
    }
}

/// That a patch without the rest is another strategy.
pub fn together(language: Language) -> &'static str {
    Text::new(
        "The patch below is only part of the change: make the rest by hand.\n",
        "下面的补丁只是改动的一部分，其余改动要手动完成。\n",
    )
    .get(language)
}

/// That the job trains like that already.
pub fn nothing(language: Language) -> String {
    tr!(language, "The job already uses the recommended strategy.", "任务已经使用推荐方案。")
}

/// That a job of the recommended strategy needs other memory than it, for keys of its own.
pub(super) fn kept(keys: &[String], language: Language) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{}`", escaped(key))).collect();
    tr!(
        language,
        "Its config also sets {} in zero_optimization: the prediction for the job as written includes these keys, the recommended strategy does not.\n",
        "它的配置还在 zero_optimization 中设置了 {}：对任务现有设置的预测包含这些键，推荐方案的预测不包含。\n",
        match language {
            Language::English => keys.join(", "),
            Language::Chinese => keys.join("、"),
        }
    )
}

/// That only a job can be changed.
pub fn no_job(name: &str, language: Language) -> String {
    let name = escaped(name);
    tr!(
        language,
        "error: --diff needs the files of a job, but {name} is a model\n  help: pass a launch script, a training script, a framework's YAML file or a DeepSpeed config",
        "错误：--diff 需要训练任务的文件，而 {name} 是模型\n  建议：请给出启动脚本、训练脚本、训练框架的 YAML 或 DeepSpeed 配置"
    )
}
