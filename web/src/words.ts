// The page's own words. Texts about answers come from the engine.

import { PLAN_WORDS } from "./plan/words";

export type Language = "en" | "zh";

const WORDS = {
  tagline: ["Plan DeepSpeed ZeRO training", "DeepSpeed ZeRO 训练规划"],
  private: ["Everything runs in your browser. Nothing is uploaded.", "全部在本页面计算，不上传任何内容。"],
  plan: ["Plan", "规划"], check: ["Check", "检查"], learn: ["Learn", "学习"],
  sections: ["Sections", "栏目"], theme: ["Theme", "主题"], light: ["Light", "浅色"], dark: ["Dark", "深色"], auto: ["Auto", "跟随系统"],
  bytesEach: ["{bytes} ÷ {count} parameters = {each} bytes each", "{bytes} ÷ {count} 个参数 = 每个 {each} 字节"],
  share: ["Copy link", "复制链接"], shared: ["Link copied", "链接已复制"], notCopied: ["The browser blocked copying", "浏览器不允许复制"],
  docs: ["Documentation", "文档"], source: ["Source", "源代码"], measuredAccuracy: ["Measured accuracy", "实测准确度"], skip: ["Skip to content", "跳到正文"],
  question: ["Question", "问题"],
  model: ["Model", "模型"], modelHint: ["Search, or drop a config.json", "搜索，或拖入 config.json"],
  pasteConfig: ["Use a config.json instead", "改用 config.json"], configText: ["Content of config.json", "config.json 的内容"],
  configUsed: ["Using config.json instead of a built-in model", "正在使用 config.json，而不是内置模型"], configClear: ["Back to built-in models", "改回内置模型"],
  card: ["GPU", "GPU 型号"], cardHint: ["Model, or memory such as 44GB", "型号，或显存大小，如 44GB"],
  count: ["GPUs per node", "每节点卡数"], nodes: ["Nodes", "节点数"], hostRam: ["Host memory", "主机内存"], hostRamHint: ["such as 512GiB", "如 512GiB"],
  method: ["Method", "训练方式"], full: ["Full", "全参数"], rank: ["LoRA rank", "LoRA 秩"],
  precision: ["Precision", "精度"], sequence: ["Sequence length", "序列长度"], tokens: ["tokens", "token"],
  batch: ["Global batch size", "全局 batch"], batchHint: ["any", "不限"],
  more: ["More", "更多选项"], fusedLoss: ["Fused loss", "融合 loss"], no: ["no", "不用"], yes: ["yes", "使用"], either: ["automatic", "自动选择"],
  objective: ["Optimize for", "优化目标"], time: ["time", "时间"], memory: ["free GPU memory", "剩余显存"], target: ["Config for", "配置用于"],
  goal: ["Tokens to train on", "训练总 token 数"], goalHint: ["such as 10B", "如 10B"], price: ["Price per GPU hour", "每 GPU 小时价格"], priceHint: ["such as $2.5", "如 ¥18"],
  answer: ["Answer", "答案"], recommended: ["Recommended strategy", "推荐方案"], recommendedRow: ["Recommended", "推荐"], nothing: ["No strategy is guaranteed to fit", "没有能保证放得下的方案"],
  thinking: ["searching…", "搜索中…"],
  bars: ["GPU memory by ZeRO stage and offload", "各 ZeRO stage 与卸载方式的显存"],
  buckets: ["The recommended strategy uses bucket sizes for this model; the rows below it use DeepSpeed's defaults.", "推荐方案的通信桶大小按模型设置；下面各行用 DeepSpeed 默认值。"],
  barsWith: ["micro-batch size {micro}, {tokens} tokens, {how}", "micro batch {micro}，{tokens} token，{how}"],
  recomputing: ["gradient checkpointing", "开启梯度检查点"], keeping: ["no gradient checkpointing", "不用梯度检查点"],
  strategy: ["Strategy", "方案"], gpu: ["GPU memory", "显存"], host: ["Host memory/node", "每节点主机内存"], verdict: ["Verdict", "结论"], barHead: ["GPU memory use", "显存构成"],
  limit: ["{bytes} per GPU", "每卡 {bytes}"],
  config: ["DeepSpeed config", "DeepSpeed 配置"], copy: ["Copy", "复制"], copied: ["Copied", "已复制"], download: ["Download", "下载"],
  launch: ["Launch command", "启动命令"], alternatives: ["Alternatives that fit", "也放得下的方案"], fallbacks: ["Fallbacks if the run still runs out of GPU memory", "降级方案（仍然显存不足时依次尝试）"],
  rejected: ["Not guaranteed to fit, even with the smallest settings", "即使用最小设置，也不能保证放得下"],
  step: ["One step", "一个训练步"], stepMemory: ["GPU memory during one step", "一步之内的显存"], stepTime: ["CUDA streams during one step", "一步之内的 CUDA stream"],
  terminal: ["Get the same answer in a terminal", "在终端里得到同样的答案"],
  checkConfig: ["Your DeepSpeed config", "你的 DeepSpeed 配置"], engineVersion: ["DeepSpeed", "DeepSpeed 版本"], frontEnd: ["Framework", "由哪个程序读取"], guess: ["auto-detect", "自动判断"],
  world: ["Total GPUs", "总卡数"], worldHint: ["unknown", "未知"], findings: ["Findings", "检查结果"], clean: ["No problems found", "没有发现问题"],
  severityError: ["error", "错误"], severityWarning: ["warning", "警告"], severityNote: ["note", "提示"],
  counted: ["errors: {errors}, warnings: {warnings}, notes: {notes}", "错误 {errors}，警告 {warnings}，提示 {notes}"],
  fixAll: ["Fix all ({count})", "全部修复（{count} 处）"], fixGuesses: ["Fix all, including unsafe fixes ({count})", "全部修复，含不安全修复（{count} 处）"],
  fixed: ["{count} fixed", "修复了 {count} 处"], changedLines: ["Show changes", "查看改动"], undo: ["Undo", "撤销"], cleaned: ["Cleaned up for checking:", "已整理成可检查的配置："], cleanUp: ["Clean up the text", "整理成配置"], wouldChange: ["Changes needed to check this text as a config:", "整理成配置所需的改动："],
  useConfig: ["Check the config in this file", "检查其中的配置"], usePlan: ["Use this file in Plan", "在“规划”里使用"],
  leaveEditor: ["Tab indents. Ctrl+Space lists keys and values. To leave the editor by keyboard, press Esc, then Tab.", "Tab 键用于缩进，Ctrl+空格列出可用的键和值。用键盘离开编辑器：先按 Esc，再按 Tab。"], choices: ["Keys and values", "键和值"],
  dropHint: ["Paste or drop a config, a chat message, a Python dict, a framework YAML file or a log. Files that you drop together are checked together.", "可以粘贴或拖入配置、聊天记录、Python 字典、训练框架的 YAML 文件或日志。一次拖入的多个文件会一起检查。"],
  loadingEditor: ["Loading the editor…", "正在加载编辑器…"], example: ["Example", "示例"], clear: ["Clear", "清空"],
  checkedWith: ["Checked with the arguments in {file}:", "同时使用 {file} 中的参数："], forget: ["Ignore these arguments", "忽略这些参数"],
  fit: ["Fit on your GPUs", "你的 GPU 能否放下"], fitLead: ["GPU memory for one training step with this config.", "用这份配置训练一步所需的显存。"], gpus: ["GPUs", "GPU"], gpusHint: ["such as 8xA100-80G", "如 8xA100-80G"], fitFull: ["Full result", "完整结果"], fitNot: ["Fix the errors above first: DeepSpeed does not load this config.", "请先修复上面的错误：DeepSpeed 无法加载这份配置。"],
  tensorsOf: ["live tensors: {held} of {whole} GPU memory", "在用张量占 {held}，显存共 {whole}"],
  changeFirst: ["Change first", "首先修改"], evidence: ["Evidence in the log", "日志中的依据"], gaps: ["Missing from the log", "日志里缺少的信息"], logTerminal: ["In a terminal, `zeropilot diagnose train.log --model … --gpus …` also compares with the prediction.", "在终端里运行 `zeropilot diagnose train.log --model … --gpus …`，还会与预测对比。"],
  fixWith: ["Fix: {title}", "修复：{title}"], accepted: ["accepted", "通过"], fails: ["loads, but the run fails", "能加载，但训练会失败"], refused: ["rejected", "不通过"], why: ["Why", "原因"], help: ["What to do", "建议"], line: ["line {line}", "第 {line} 行"],
  learnTitle: ["GPU memory on every rank", "每个 rank 的显存"], learnLead: ["Exact tensors of {model}, as DeepSpeed lays them out. Change the model in Plan.", "{model} 的张量，按 DeepSpeed 的实际布局精确计算。可以在“规划”里更换模型。"],
  stage: ["Stage", "Stage"], ranks: ["Ranks", "Rank 数"], play: ["Play", "播放"], pause: ["Pause", "暂停"],
  afterInit: ["After initialization", "初始化之后"], afterBackward: ["After backward", "反向传播之后"], afterStep: ["After the step", "参数更新之后"], phase: ["Phase", "时刻"],
  film: ["During one step", "一步之内"], filmLead: ["GPU memory of each rank during one training step. DeepSpeed gathers and releases weights, activations accumulate, and then gradients appear.", "一个训练步之内每个 rank 的显存：DeepSpeed 聚合权重，用完释放；激活值逐层累积，随后出现梯度。"],
  filmMoment: ["Point in the step", "一步之内的时刻"], filmNow: ["{phase}: {bytes}, including {gathered} gathered from other ranks", "{phase}：共 {bytes}，其中 {gathered} 是从其他 rank 聚合来的"], filmPlain: ["{phase}: {bytes}", "{phase}：共 {bytes}"],
  micro: ["Micro-batch size", "micro batch"], checkpointing: ["Gradient checkpointing", "梯度检查点"], off: ["off", "关"], on: ["on", "开"],
  offload: ["CPU offload", "CPU 卸载"], offloadNone: ["none", "不用"], offloadOptimizer: ["optimizer", "优化器"], offloadAll: ["optimizer and weights", "优化器和权重"],
  allStages: ["All stages on one scale", "同一刻度下的各个 stage"], sameScale: ["All stages use the same scale: each pixel is the same number of bytes. The grids below the ranks show the shard that each rank keeps.", "所有 stage 用同一刻度：每个像素代表的字节数相同。rank 下面的小格表示各自保留哪个分片。"],
  limitLine: ["Red line: {bytes}, the memory of the GPU chosen in Plan.", "红线：{bytes}，即“规划”里所选 GPU 的显存。"], limitAbove: ["The GPU chosen in Plan has {bytes} of memory, far more than these bars show.", "“规划”里所选 GPU 的显存为 {bytes}，远高于图中的柱形。"],
  kept: ["Stored on each rank", "每个 rank 保留"], slice: ["its shard, 1 of {count}", "自己的分片（{count} 份之一）"], copy1: ["a full copy", "完整一份"],
  storyTitle: ["ZeRO in seven steps", "七步看懂 ZeRO"], storyLead: ["A short tour with numbers for your model. Each step sets the controls below.", "用所选模型的实际数字逐步讲解。每一步都会设置下面的选项。"], storyStart: ["Start the tour", "开始"], next: ["Next", "下一步"], back: ["Back", "上一步"], moreAbout: ["Read more", "详细说明"], fullScreen: ["Full screen", "全屏"],
  filmAxis: ["GPU memory used by tensors", "张量占用的显存"], filmPeak: ["Peak: {bytes}.", "峰值：{bytes}。"],
  perRank: ["{bytes} per rank", "每个 rank {bytes}"], folklore: ["Common claims and facts", "常见说法与事实"], said: ["Claim", "常见说法"], holds: ["Fact", "事实"], here: ["With your numbers", "按你的数据"],
  concepts: ["Concepts", "概念"], broken: ["zeropilot could not be loaded: {error}", "zeropilot 无法加载：{error}"], part: ["Part", "组成"], modelStates: ["model states", "模型状态"],
  ...PLAN_WORDS,
} as const satisfies Record<string, readonly [string, string]>;

export type Word = keyof typeof WORDS;

export function words(language: Language) {
  return (word: Word, values: Record<string, string | number> = {}): string =>
    WORDS[word][language === "en" ? 0 : 1].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));
}
export type Say = ReturnType<typeof words>;
