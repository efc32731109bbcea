//! The sentences of the findings.

use zeropilot_lint::Wording;
use zeropilot_text::Text;

const fn wording(
    message: (&'static str, &'static str),
    why: (&'static str, &'static str),
    help: (&'static str, &'static str),
) -> Wording {
    Wording {
        message: Text::new(message.0, message.1),
        why: Text::new(why.0, why.1),
        help: Text::new(help.0, help.1),
    }
}

pub(crate) static NO_PYTHON: Wording = wording(
    ("no Python interpreter was found", "没有找到 Python 解释器"),
    (
        "DeepSpeed is a Python package; without an interpreter nothing can be started.",
        "DeepSpeed 是 Python 包，没有解释器就无法启动训练。",
    ),
    (
        "activate the environment you train in, or name its interpreter with --python",
        "激活训练所用的环境，或用 --python 指定解释器",
    ),
);

pub(crate) static NO_PACKAGE: Wording = wording(
    ("`{package}` is not installed for {python}", "{python} 里没有安装 `{package}`"),
    ("{reason}", "{reason}"),
    ("install it into that environment", "在该环境中安装它"),
);

pub(crate) static SEVERAL_VERSIONS: Wording = wording(
    ("`{package}` is installed several times: {versions}", "`{package}` 装了多个版本：{versions}"),
    (
        "Which of them is imported depends on the order of directories; half an upgrade fails in strange ways.",
        "导入哪一个取决于目录顺序；升级到一半的环境会出现莫名其妙的错误。",
    ),
    (
        "uninstall it until none is left, then install the one you want",
        "反复卸载直到干净，再安装需要的版本",
    ),
);

pub(crate) static NEAREST_ENGINE: Wording = wording(
    (
        "DeepSpeed {version} is not one of the versions that were asked; {nearest} answers for it",
        "DeepSpeed {version} 没有被逐项核对过，这里按最接近的 {nearest} 判断",
    ),
    ("Keys and defaults can differ between the two.", "两者的键和默认值可能有出入。"),
    ("read its release notes if a finding surprises you", "若结果出乎意料，请查看该版本的发布说明"),
);

pub(crate) static CPU_TORCH: Wording = wording(
    ("PyTorch {version} is a build without CUDA", "PyTorch {version} 是不带 CUDA 的版本"),
    (
        "There are {count} GPUs here and PyTorch will not see any of them.",
        "本机有 {count} 张 GPU，但 PyTorch 一张也看不到。",
    ),
    ("install a build for your driver's CUDA", "安装与驱动的 CUDA 匹配的版本"),
);

pub(crate) static CONFIG_REFUSED: Wording = wording(
    (
        "the installed DeepSpeed {version} refuses the config: {first}",
        "已安装的 DeepSpeed {version} 会拒绝这份配置：{first}",
    ),
    ("The run ends while it loads its config, on every rank.", "所有进程都会在加载配置时退出。"),
    (
        "`zeropilot check` shows all {count} findings with their places and fixes",
        "用 `zeropilot check` 查看全部 {count} 个问题的位置和改法",
    ),
);

pub(crate) static NO_COMPILER: Wording = wording(
    ("there is no C++ compiler", "没有 C++ 编译器"),
    (
        "DeepSpeed builds {what} when the run starts, and ends if it cannot.",
        "DeepSpeed 会在启动时编译 {what}，编译不了就退出。",
    ),
    ("install one", "安装编译器"),
);

pub(crate) static NO_NINJA: Wording = wording(
    ("ninja is not installed", "没有安装 ninja"),
    (
        "DeepSpeed builds {what} when the run starts and refuses to without ninja.",
        "DeepSpeed 会在启动时编译 {what}，没有 ninja 就直接报错。",
    ),
    ("install it into the training environment", "在训练环境中安装它"),
);

pub(crate) static NO_NVCC: Wording = wording(
    ("nvcc is not here", "没有 nvcc"),
    (
        "`{optimizer}` in the config means DeepSpeed's fused kernel, which is built with CUDA's compiler when the run starts.",
        "配置里的 `{optimizer}` 会使用 DeepSpeed 的融合算子，启动时需要用 CUDA 的编译器编译。",
    ),
    (
        "install the CUDA toolkit of PyTorch's version and set CUDA_HOME, or write `\"torch_adam\": true` into `optimizer.params`",
        "安装与 PyTorch 一致的 CUDA toolkit 并设置 CUDA_HOME，或在 `optimizer.params` 里写 `\"torch_adam\": true`",
    ),
);

pub(crate) static NO_LIBAIO: Wording = wording(
    ("the headers of libaio are not here", "没有 libaio 的头文件"),
    (
        "Offload to NVMe uses DeepSpeed's disk engine, which is built against libaio when the run starts.",
        "NVMe offload 依赖 DeepSpeed 的异步 IO，启动时要链接 libaio 编译。",
    ),
    ("install them", "安装 libaio 开发包"),
);

pub(crate) static NO_DRIVER: Wording = wording(
    ("no NVIDIA driver answers here: {reason}", "本机没有可用的 NVIDIA 驱动：{reason}"),
    ("GPUs can be neither counted nor used.", "既无法统计 GPU，也无法使用 GPU。"),
    (
        "run this where you train; in a container start it with --gpus all",
        "请在训练机上运行；容器要加 --gpus all 启动",
    ),
);

pub(crate) static NO_GPU: Wording = wording(
    ("the driver lists no GPU", "驱动没有列出任何 GPU"),
    ("Nothing can be trained on a GPU here.", "本机无法用 GPU 训练。"),
    ("run this where you train", "请在训练机上运行"),
);

pub(crate) static HIDDEN_GPUS: Wording = wording(
    (
        "CUDA_VISIBLE_DEVICES={value} leaves {seen} of {count} GPUs",
        "CUDA_VISIBLE_DEVICES={value}，{count} 张 GPU 只剩 {seen} 张可见",
    ),
    ("A run started from this shell sees only those.", "从这个终端启动的训练只能看到这些。"),
    ("unset it if that is not meant", "如非本意，请取消该环境变量"),
);

pub(crate) static UNKNOWN_GPU: Wording = wording(
    (
        "CUDA_VISIBLE_DEVICES={value} names `{entry}`, which is not here; {seen} of {count} GPUs stay visible",
        "CUDA_VISIBLE_DEVICES={value} 里的 `{entry}` 不存在；{count} 张 GPU 只剩 {seen} 张可见",
    ),
    (
        "CUDA stops reading the list at the first entry that names no GPU and says nothing.",
        "CUDA 读到第一个不存在的编号就停止，且不作任何提示。",
    ),
    ("correct the list", "改正这个列表"),
);

pub(crate) static DIFFERENT_GPUS: Wording = wording(
    ("the GPUs are of different kinds: {names}", "GPU 型号不一致：{names}"),
    (
        "ZeRO gives every rank the same share; the smallest memory and the slowest card decide.",
        "ZeRO 给每个进程的份额相同，因此由显存最小、速度最慢的卡决定上限。",
    ),
    (
        "use equal ones, chosen with CUDA_VISIBLE_DEVICES",
        "用 CUDA_VISIBLE_DEVICES 选出型号相同的卡",
    ),
);

pub(crate) static LITTLE_RAM: Wording = wording(
    (
        "the host has {have}, and the run needs about {need} for {ranks} processes",
        "主机内存 {have}，而 {ranks} 个进程大约需要 {need}",
    ),
    (
        "What is offloaded lives in host memory; the system kills the run when it is full.",
        "offload 的内容放在主机内存里，内存耗尽时系统会杀掉训练进程。",
    ),
    (
        "offload less, use more hosts, or fewer processes on each",
        "减少 offload、增加主机，或减少每台主机的进程数",
    ),
);

pub(crate) static MEMLOCK: Wording = wording(
    (
        "a process may lock only {limit} of memory (`ulimit -l`)",
        "单个进程最多只能锁定 {limit} 内存（`ulimit -l`）",
    ),
    (
        "Offload to NVMe reads and writes through locked buffers, and fails where they cannot be locked.",
        "NVMe offload 的读写缓冲区必须锁页，超过限制就会失败。",
    ),
    (
        "raise it: `ulimit -l unlimited`, `memlock` in /etc/security/limits.conf, or `--ulimit memlock=-1` for a container",
        "提高限制：`ulimit -l unlimited`、/etc/security/limits.conf 的 `memlock`，容器用 `--ulimit memlock=-1`",
    ),
);

pub(crate) static SMALL_SHM: Wording = wording(
    ("/dev/shm holds only {size}", "/dev/shm 只有 {size}"),
    (
        "NCCL and the workers of data loaders share memory there; too little ends in bus errors or hangs.",
        "NCCL 和 DataLoader 的 worker 都在这里共享内存，太小会出现 bus error 或卡死。",
    ),
    (
        "start the container with --shm-size=16g or --ipc=host",
        "启动容器时加 --shm-size=16g 或 --ipc=host",
    ),
);

pub(crate) static FEW_FILES: Wording = wording(
    (
        "a process may open only {limit} files (`ulimit -n`)",
        "单个进程最多打开 {limit} 个文件（`ulimit -n`）",
    ),
    (
        "Workers of data loaders and shards of checkpoints use one each; `Too many open files` comes late in a run.",
        "DataLoader 的 worker 和 checkpoint 分片都要占用，训练到后面才会报 `Too many open files`。",
    ),
    ("raise it: `ulimit -n 65536`", "提高限制：`ulimit -n 65536`"),
);

pub(crate) static NO_PATH: Wording = wording(
    ("`nvme_path` {path} {problem}", "`nvme_path` {path} {problem}"),
    (
        "DeepSpeed swaps into files below it and exits with an error if it cannot create them.",
        "DeepSpeed 要在其中创建交换文件，创建失败就退出。",
    ),
    ("create it, or give it to the user who trains", "创建该目录，或把权限给训练用户"),
);

pub(crate) static SLOW_DISK: Wording = wording(
    ("`nvme_path` {path} lies on {kind}", "`nvme_path` {path} 位于 {kind} 上"),
    ("{reason}", "{reason}"),
    ("choose a directory on a local NVMe disk", "换到本地 NVMe 盘上的目录"),
);

pub(crate) static FULL_DISK: Wording = wording(
    ("`nvme_path` {path} has {free} free", "`nvme_path` {path} 只剩 {free} 空间"),
    (
        "Optimizer states alone are 12 bytes for every parameter a rank keeps: {free} hold {parameters}.",
        "仅优化器状态每个参数就要 12 字节：{free} 只够 {parameters} 参数。",
    ),
    ("make room, or choose another disk", "清理空间，或换一块盘"),
);

pub(crate) static STALE_LOCK: Wording = wording(
    (
        "no process on this machine holds the lock {path} of PyTorch's extension cache, {minutes} minutes old",
        "PyTorch 扩展缓存的锁 {path} 已存在 {minutes} 分钟，本机没有进程持有它",
    ),
    (
        "A build that was killed leaves its lock behind. Every rank that needs the extension then waits for it without end and without a message.",
        "编译被中途杀掉时会留下这个锁。之后每个需要该扩展的 rank 都会一直等待，而且没有任何提示。",
    ),
    (
        "if no other machine that shares this directory builds the extension now, remove the lock: `rm {path}`",
        "如果共享该目录的其他机器没有正在编译这个扩展，删除它：`rm {path}`",
    ),
);

pub(crate) static KNOWN_DEFECT: Wording =
    wording(("{message}", "{message}"), ("{why}", "{why}"), ("{help}", "{help}"));

pub(crate) static KNOWN_DEFECTS: Wording = wording(
    (
        "the installed versions have {count} known defects that a job may meet",
        "已安装的版本有 {count} 个已知缺陷，训练可能会遇到",
    ),
    (
        "Whether a job meets them depends on its config and script: {ids}.",
        "是否会遇到取决于配置和脚本：{ids}。",
    ),
    (
        "name a config to see which of them apply, or read one: `zeropilot advisories {first}`",
        "给出配置可以看到哪些适用；也可以逐个查看：`zeropilot advisories {first}`",
    ),
);
