//! What programs that speak the Model Context Protocol are told.

use std::io::Error;

use serde_json::Value;
use zeropilot_text::{Language, Text, tr};

use crate::{escaped, system};

/// When to call which tool.
pub fn instructions(language: Language) -> &'static str {
    Text::new(
        "zeropilot answers questions about DeepSpeed ZeRO training before you use a GPU; it never starts a training run. Call `plan` to find the ZeRO stage, offload and batch size with which a model fits on given GPUs. Call `memory` and `simulate` to predict the GPU memory and step time of a strategy or job. Call `check` before you run a DeepSpeed config or launch script. Call `diagnose` with the log of a run that failed with CUDA out of memory. Call `explain` and `rule` for the meaning of a config key or a rule. Give a job as a path: a launch script, a training script, a framework's YAML file or a DeepSpeed config. Predictions have bounds: report them together with the number. Also report everything that an answer lists as assumed or not modeled.",
        "zeropilot 在动用 GPU 之前回答有关 DeepSpeed ZeRO 训练的问题，从不启动训练。用 `plan` 找出 stage、卸载和 batch，使模型在给定的 GPU 上放得下。用 `memory` 和 `simulate` 预测某个方案或任务的显存和每步用时。运行 DeepSpeed 配置或启动脚本之前，先用 `check` 检查。训练因 CUDA out of memory 失败时，把日志交给 `diagnose`。用 `explain` 和 `rule` 查看配置键和规则的含义。任务以路径给出：启动脚本、训练脚本、训练框架的 YAML 或 DeepSpeed 配置。预测带有上下界：转述数字时请一并给出，并说明答案列出的假定和未建模的部分。",
    )
    .get(language)
}

/// A message without a method.
pub fn no_method(language: Language) -> &'static str {
    Text::new(
        "the message has no `method`; send JSON-RPC 2.0 requests, one per line",
        "消息没有 `method`；请发送 JSON-RPC 2.0 请求，每行一个",
    )
    .get(language)
}

/// A method that only other servers have.
pub fn unknown_method(name: &str, language: Language) -> String {
    let name = escaped(name);
    tr!(
        language,
        "zeropilot has no method `{name}`; use `tools/list` or `tools/call`",
        "zeropilot 没有方法 `{name}`；它只提供工具：`tools/list`、`tools/call`"
    )
}

/// A tool that is not there.
pub fn unknown_tool(name: &str, known: &[&str], language: Language) -> String {
    let (name, known) = (escaped(name), known.join(", "));
    tr!(
        language,
        "zeropilot has no tool `{name}`; its tools: {known}",
        "zeropilot 没有工具 `{name}`；可用的工具：{known}"
    )
}

/// A parameter that a tool does not take.
pub fn unknown_parameter(tool: &str, name: &str, known: &[String], language: Language) -> String {
    let (name, known) = (escaped(name), known.join(", "));
    tr!(
        language,
        "error: {tool} has no parameter `{name}`\n  help: use one of its parameters: {known}",
        "错误：{tool} 没有参数 `{name}`\n  建议：从可用的参数中选择：{known}"
    )
}

/// A value of another kind.
pub fn wrong_value(name: &str, wanted: &str, value: &Value, language: Language) -> String {
    let value = value.to_string();
    let value = escaped(&value);
    tr!(
        language,
        "error: {name} cannot be {value}\n  help: pass {wanted}",
        "错误：{name} 不能是 {value}\n  建议：请传入 {wanted}"
    )
}

/// That the client went away in the middle of a message.
pub fn client_gone(error: &Error, language: Language) -> String {
    let why = system::failure(error, language);
    tr!(
        language,
        "error: the connection to the MCP client failed: {why}\n  help: let an agent start `zeropilot mcp`; see docs/agents.md",
        "错误：与 MCP 客户端的连接中断：{why}\n  建议：由智能体（agent）启动 `zeropilot mcp`，配置方法见 docs/zh/agents.md"
    )
}
