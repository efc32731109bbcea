//! The help of `zeropilot new` in Chinese.

/// What the command does.
pub(crate) const ABOUT: &str = "按预设或选项生成 DeepSpeed 配置，供读取它的训练框架使用";

/// Examples and exit codes.
pub(crate) const EXAMPLES: &str = "\
示例：
  zeropilot new --stage 3 --micro-batch 2 --grad-accum 32 --offload --world-size 4 -o ds_zero3.json
  zeropilot new zero2 --for hf-trainer
  zeropilot new zero3 --for deepspeed --model qwen3-8b --world-size 8 --global-batch 256 --micro-batch 2
  zeropilot new zero3_nvme --nvme-path /local_nvme/job1 --fp16 --initial-scale-power 12
  zeropilot new zero3 --tiers -o ds.json
  zeropilot new zero2 -o - | zeropilot check -

退出码：0 已写出，2 被拒绝或无法写入";
