//! The help of `zeropilot new` in Chinese.

/// What the command does.
pub(crate) const ABOUT: &str = "生成 DeepSpeed 配置：按预设或逐项指定，写给具体的训练程序";

/// Headings by how the English ones begin.
pub(crate) const HEADINGS: &[(&str, &str)] = &[
    ("Batch", "Batch：每卡 batch × 梯度累积 × 进程数"),
    ("Offload", "Offload"),
    ("Precision", "精度"),
    ("Optimizer", "优化器与学习率调度"),
    ("DeepSpeed's own", "DeepSpeed 自带的梯度检查点与日志"),
    ("Fine-grained", "zero_optimization 的细粒度键（大小单位是元素个数，不是字节）"),
];

/// Option names and what they mean.
pub(crate) const OPTIONS: &[(&str, &str)] = &[
    ("preset", "预设：stage 加上它的 offload 设置"),
    ("stage", "切分什么：1 优化器状态，2 加上梯度，3 再加上权重"),
    ("target", "由哪个程序读取配置；决定写 \"auto\" 还是数值"),
    ("output", "写到哪个文件，`-` 表示标准输出；默认按 stage 命名"),
    ("force", "覆盖已有的文件"),
    ("tiers", "一次写出小、中、大三份配置，便于对比"),
    ("json", "以 JSON 输出结果"),
    ("model", "按这个模型确定 bucket 大小：模型名（如 qwen3-8b）或含 config.json 的目录"),
    ("link_bandwidth", "按链路每秒能传的字节数确定 bucket 大小，如 25GB"),
    ("micro_batch", "每张卡一次处理的样本数"),
    ("grad_accum", "梯度累积步数"),
    ("global_batch", "所有进程一次参数更新的样本总数，由它推出梯度累积步数"),
    ("offload", "把该 stage 能放的都放到内存：优化器状态，stage 3 还有权重"),
    ("offload_optimizer", "优化器状态放在哪里"),
    ("offload_param", "权重放在哪里；仅 stage 3"),
    ("nvme_path", "高速盘上的目录，引擎启动时会清空它"),
    ("pin_memory", "使用锁页内存：拷贝更快，但其他程序用不了这部分内存［默认 true］"),
    ("aio_block_size", "每个磁盘请求的字节数"),
    ("aio_queue_depth", "同时进行的磁盘请求数"),
    ("aio_intra_op_parallelism", "一次磁盘传输的线程数"),
    ("aio_single_submit", "逐个提交磁盘请求"),
    ("aio_overlap_events", "提交与等待磁盘请求重叠进行"),
    ("fp32", "用 fp32 训练"),
    ("loss_scale", "fp16：固定的 loss scale，不动态调整"),
    ("initial_scale_power", "fp16：动态 loss scale 从 2 的这个次幂开始"),
    ("loss_scale_window", "fp16：连续这么多步没有溢出就翻倍"),
    ("hysteresis", "fp16：连续溢出这么多次才减半"),
    ("min_loss_scale", "fp16：loss scale 的下限"),
    ("optimizer", "由引擎创建的优化器；`none` 表示由脚本创建"),
    ("betas", "Adam 和 Lion 的 betas，如 0.9,0.95"),
    ("eps", "Adam 和 Adagrad 的 epsilon"),
    ("scheduler", "由引擎创建的学习率调度；`none` 表示由脚本创建"),
    ("warmup_steps", "学习率升到最高值所用的步数"),
    ("total_steps", "总训练步数"),
    ("warmup_type", "学习率上升的方式［引擎默认 log］"),
    ("clip", "梯度裁剪的范数，0 表示不裁剪［默认 1.0］"),
    (
        "activation_checkpointing",
        "写出 `activation_checkpointing`，供调用 deepspeed.checkpointing 的模型使用",
    ),
    ("partition_activations", "把保留的激活切分到模型并行的各进程"),
    ("cpu_checkpointing", "把激活放到内存"),
    ("number_checkpoints", "为这么多个 checkpoint 准备一块连续缓冲区"),
    ("synchronize_checkpoint_boundary", "在每个 checkpoint 处等待设备"),
    ("profile_checkpoints", "统计每个 checkpoint 的耗时"),
    ("steps_per_print", "引擎日志的间隔步数"),
];

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
