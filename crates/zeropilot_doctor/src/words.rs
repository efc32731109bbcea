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
        "DeepSpeed is a Python package; without an interpreter, no training can start.",
        "DeepSpeed 是 Python 包，没有解释器就无法启动训练。",
    ),
    (
        "activate the environment you train in, or set its interpreter with --python",
        "激活训练所用的环境，或用 --python 指定解释器",
    ),
);

pub(crate) static NO_PACKAGE: Wording = wording(
    ("`{package}` is not installed for {python}", "{python} 里没有安装 `{package}`"),
    ("{reason}", "{reason}"),
    ("install `{package}` in this environment", "在该环境中安装 `{package}`"),
);

pub(crate) static SEVERAL_VERSIONS: Wording = wording(
    ("`{package}` is installed several times: {versions}", "`{package}` 装了多个版本：{versions}"),
    (
        "The order of directories on Python's search path determines which version Python imports. An incomplete upgrade causes confusing errors.",
        "Python 导入哪个版本取决于搜索路径的目录顺序；升级到一半的环境会出现难以解释的错误。",
    ),
    ("uninstall all versions, then install the one you want", "全部卸载，再安装需要的版本"),
);

pub(crate) static NEAREST_ENGINE: Wording = wording(
    (
        "zeropilot has no data for DeepSpeed {version} and uses the nearest version, {nearest}",
        "zeropilot 没有 DeepSpeed {version} 的数据，按最接近的 {nearest} 判断",
    ),
    (
        "Keys and defaults can differ between DeepSpeed {version} and {nearest}.",
        "DeepSpeed {version} 与 {nearest} 的键和默认值可能不同。",
    ),
    (
        "read the release notes of the installed version if a finding looks wrong",
        "如果某个问题看起来不对，请查看已安装版本的发布说明",
    ),
);

pub(crate) static CPU_TORCH: Wording = wording(
    ("PyTorch {version} is a build without CUDA", "PyTorch {version} 是不带 CUDA 的版本"),
    (
        "This machine has {count} GPUs, but PyTorch cannot use any of them.",
        "本机有 {count} 张卡，但 PyTorch 一张也用不了。",
    ),
    (
        "install a PyTorch build for your driver's CUDA version",
        "安装与驱动的 CUDA 版本匹配的 PyTorch",
    ),
);

pub(crate) static CONFIG_REFUSED: Wording = wording(
    (
        "the installed DeepSpeed {version} rejects the config: {first}",
        "已安装的 DeepSpeed {version} 不接受这份配置：{first}",
    ),
    (
        "Every rank exits with an error when it loads the config.",
        "所有 rank 都会在加载配置时报错退出。",
    ),
    (
        "run `zeropilot check` to see all {count} findings with their locations and fixes",
        "用 `zeropilot check` 查看全部 {count} 个问题的位置和修复方法",
    ),
);

pub(crate) static NO_COMPILER: Wording = wording(
    ("no C++ compiler was found", "没有找到 C++ 编译器"),
    (
        "DeepSpeed compiles {what} at startup and exits with an error if the build fails.",
        "DeepSpeed 会在启动时编译{what}，编译失败就报错退出。",
    ),
    ("install a C++ compiler", "安装 C++ 编译器"),
);

pub(crate) static NO_NINJA: Wording = wording(
    ("ninja is not installed", "没有安装 ninja"),
    (
        "DeepSpeed compiles {what} at startup and raises an error without ninja.",
        "DeepSpeed 会在启动时编译{what}，没有 ninja 就报错。",
    ),
    ("install ninja in the training environment", "在训练环境中安装 ninja"),
);

pub(crate) static NO_NVCC: Wording = wording(
    ("nvcc is not installed", "没有安装 nvcc"),
    (
        "With `{optimizer}` in the config, DeepSpeed uses its fused kernel and compiles it with nvcc at startup.",
        "配置里的 `{optimizer}` 会使用 DeepSpeed 的融合算子，启动时用 nvcc 编译。",
    ),
    (
        "install the CUDA toolkit that matches PyTorch's CUDA version and set CUDA_HOME, or set `\"torch_adam\": true` in `optimizer.params`",
        "安装与 PyTorch 的 CUDA 版本一致的 CUDA toolkit 并设置 CUDA_HOME，或在 `optimizer.params` 里写 `\"torch_adam\": true`",
    ),
);

pub(crate) static NO_LIBAIO: Wording = wording(
    ("the libaio headers are not installed", "没有安装 libaio 的头文件"),
    (
        "NVMe offload uses DeepSpeed's asynchronous I/O module, which DeepSpeed compiles with libaio at startup.",
        "NVMe 卸载使用 DeepSpeed 的异步 I/O 模块，启动时要用 libaio 编译。",
    ),
    ("install the libaio development package", "安装 libaio 开发包"),
);

pub(crate) static NO_DRIVER: Wording = wording(
    ("no working NVIDIA driver: {reason}", "没有可用的 NVIDIA 驱动：{reason}"),
    (
        "Without a driver, zeropilot cannot list the GPUs, and PyTorch cannot use them.",
        "没有驱动，zeropilot 无法列出本机的卡，PyTorch 也无法使用这些卡。",
    ),
    (
        "run this command on the training machine; if you use a container, start it with --gpus all",
        "请在训练机上运行此命令；使用容器时，启动容器要加 --gpus all",
    ),
);

pub(crate) static NO_GPU: Wording = wording(
    ("the driver lists no GPU", "驱动没有列出任何卡"),
    ("This machine cannot train on GPUs.", "本机无法用 GPU 训练。"),
    ("run this command on the training machine", "请在训练机上运行此命令"),
);

pub(crate) static HIDDEN_GPUS: Wording = wording(
    (
        "CUDA_VISIBLE_DEVICES={value} makes only {seen} of {count} GPUs visible",
        "CUDA_VISIBLE_DEVICES={value}，{count} 张卡中只有 {seen} 张可见",
    ),
    (
        "A run started from this shell uses only the visible GPUs.",
        "从这个终端启动的训练只能用可见的卡。",
    ),
    ("unset CUDA_VISIBLE_DEVICES to use all GPUs", "要用全部的卡，请取消设置 CUDA_VISIBLE_DEVICES"),
);

pub(crate) static UNKNOWN_GPU: Wording = wording(
    (
        "in CUDA_VISIBLE_DEVICES={value}, `{entry}` does not exist: only {seen} of {count} GPUs are visible",
        "CUDA_VISIBLE_DEVICES={value} 里的 `{entry}` 不存在；{count} 张卡中只有 {seen} 张可见",
    ),
    (
        "CUDA silently stops reading CUDA_VISIBLE_DEVICES at the first GPU that does not exist.",
        "CUDA 读到 CUDA_VISIBLE_DEVICES 中第一张不存在的卡就不再往后读，且没有任何提示。",
    ),
    ("correct the list in CUDA_VISIBLE_DEVICES", "改正 CUDA_VISIBLE_DEVICES 里的列表"),
);

pub(crate) static DIFFERENT_GPUS: Wording = wording(
    ("the GPU models differ: {names}", "GPU 型号不一致：{names}"),
    (
        "ZeRO gives every rank the same share, so the GPU with the least memory and the slowest GPU set the limits.",
        "ZeRO 给每个 rank 分配的份额相同，因此上限取决于显存最小的卡和速度最慢的卡。",
    ),
    (
        "select GPUs of the same type with CUDA_VISIBLE_DEVICES",
        "用 CUDA_VISIBLE_DEVICES 选出型号相同的卡",
    ),
);

pub(crate) static LITTLE_RAM: Wording = wording(
    (
        "the host memory is {have}, but {ranks} ranks need about {need}",
        "主机内存只有 {have}，而 {ranks} 个 rank 大约需要 {need}",
    ),
    (
        "Offloaded model states are in host memory; when host memory is full, the system kills the run (OOM killer).",
        "卸载的模型状态放在主机内存里，主机内存耗尽时系统会杀掉训练（OOM killer）。",
    ),
    (
        "offload less, use more hosts, or run fewer ranks per host",
        "减少卸载、增加主机，或减少每台主机的 rank 数",
    ),
);

pub(crate) static MEMLOCK: Wording = wording(
    (
        "a process may lock only {limit} of host memory (`ulimit -l`)",
        "单个进程最多只能锁定 {limit} 主机内存（`ulimit -l`）",
    ),
    (
        "NVMe offload reads and writes through pinned memory and fails if it cannot lock this memory.",
        "NVMe 卸载的读写缓冲区必须锁页，无法锁页就会失败。",
    ),
    (
        "raise the limit: `ulimit -l unlimited`, `memlock` in /etc/security/limits.conf, or `--ulimit memlock=-1` for a container",
        "提高限制：`ulimit -l unlimited`、/etc/security/limits.conf 的 `memlock`，容器用 `--ulimit memlock=-1`",
    ),
);

pub(crate) static SMALL_SHM: Wording = wording(
    ("/dev/shm has a size of only {size}", "/dev/shm 只有 {size}"),
    (
        "NCCL and data loader workers use shared memory in /dev/shm. If /dev/shm is too small, the run hangs or fails with a bus error.",
        "NCCL 和 DataLoader 的 worker 都用 /dev/shm 做共享内存，太小会出现 bus error 或卡住。",
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
        "Each data loader worker and each checkpoint shard opens a file; the error `Too many open files` appears late in a run.",
        "每个 DataLoader worker 和每个 checkpoint 分片都要打开一个文件，到训练后期才会报 `Too many open files`。",
    ),
    ("raise the limit: `ulimit -n 65536`", "提高限制：`ulimit -n 65536`"),
);

pub(crate) static NO_PATH: Wording = wording(
    ("`nvme_path` {path} {problem}", "`nvme_path` {path} {problem}"),
    (
        "DeepSpeed creates its swap files in `nvme_path` and exits with an error if it cannot.",
        "DeepSpeed 要在 `nvme_path` 里创建卸载用的文件，创建失败就报错退出。",
    ),
    (
        "create the directory, or give the training user write permission",
        "创建该目录，或给训练用户写权限",
    ),
);

pub(crate) static SLOW_DISK: Wording = wording(
    ("`nvme_path` {path} is on {kind}", "`nvme_path` {path} 位于 {kind} 上"),
    ("{reason}", "{reason}"),
    ("choose a directory on a local NVMe disk", "换到本地 NVMe 盘上的目录"),
);

pub(crate) static FULL_DISK: Wording = wording(
    ("`nvme_path` {path} has only {free} of free space", "`nvme_path` {path} 只剩 {free} 空间"),
    (
        "Optimizer states alone need 12 bytes for each parameter that a rank updates: {free} is enough for {parameters} parameters.",
        "仅优化器状态一项，每个 rank 负责的每个参数就占 12 字节：{free} 只够 {parameters} 个参数。",
    ),
    ("free disk space, or choose another disk", "清理磁盘空间，或换一块盘"),
);

pub(crate) static STALE_LOCK: Wording = wording(
    (
        "the lock {path} in PyTorch's extension cache is {minutes} minutes old, and no local process holds it",
        "PyTorch 扩展缓存的锁 {path} 已存在 {minutes} 分钟，本机没有进程持有它",
    ),
    (
        "A killed build leaves its lock behind. Every rank that needs the extension then waits for the lock forever, without a message.",
        "编译被中途杀掉时会留下这个锁。之后每个需要该扩展的 rank 都会一直等待，而且没有任何提示。",
    ),
    (
        "unless another machine that shares this directory is building the extension, remove the lock: `rm {path}`",
        "如果共享该目录的其他机器没有正在编译这个扩展，就删除这个锁：`rm {path}`",
    ),
);

pub(crate) static KNOWN_DEFECT: Wording =
    wording(("{message}", "{message}"), ("{why}", "{why}"), ("{help}", "{help}"));

pub(crate) static KNOWN_DEFECTS: Wording = wording(
    (
        "the installed versions have {count} known defects that can affect a job",
        "已安装的版本有 {count} 个已知缺陷，可能影响训练",
    ),
    (
        "Whether the defects {ids} affect a job depends on its config and script.",
        "缺陷 {ids} 是否有影响，取决于配置和脚本。",
    ),
    (
        "pass a config to see which defects apply, or run `zeropilot advisories {first}` to read about one of them",
        "指定配置，即可查看其中哪些与它有关；也可以逐个查看：`zeropilot advisories {first}`",
    ),
);
