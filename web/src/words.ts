// The page's own words. Texts about answers come from the engine.

export type Language = "en" | "zh";

const WORDS = {
  tagline: ["Plan DeepSpeed ZeRO training", "DeepSpeed ZeRO 训练规划"],
  private: ["Computed in this page. Nothing is uploaded.", "全部在本页面计算，不上传任何内容。"],
  plan: ["Plan", "规划"], check: ["Check", "检查"], learn: ["Learn", "学习"],
  sections: ["Sections", "栏目"], theme: ["Theme", "主题"], light: ["Light", "浅色"], dark: ["Dark", "深色"], auto: ["Auto", "跟随系统"],
  bytesEach: ["{bytes} ÷ {count} parameters = {each} bytes each", "{bytes} ÷ {count} 个参数 = 每个 {each} 字节"],
  share: ["Copy link", "复制链接"], shared: ["Link copied", "链接已复制"],
  question: ["Question", "问题"],
  model: ["Model", "模型"], modelHint: ["Search built-in models, or drop a config.json here", "搜索内置目录，或把 config.json 拖到这里"],
  pasteConfig: ["Use a config.json instead", "改用 config.json"], configText: ["Content of config.json", "config.json 的内容"],
  configUsed: ["config.json is used instead of a built-in model", "正在使用 config.json，而不是内置目录"], configClear: ["Back to built-in models", "改回内置目录"],
  card: ["GPU", "GPU 型号"], cardHint: ["A card, or its memory such as 44GB", "型号，或显存大小，如 44GB"],
  count: ["GPUs per node", "每节点卡数"], nodes: ["Nodes", "节点数"], hostRam: ["Host memory", "主机内存"], hostRamHint: ["such as 512GiB", "如 512GiB"],
  method: ["Method", "训练方式"], full: ["Full", "全参数"], rank: ["LoRA rank", "LoRA rank"],
  precision: ["Precision", "精度"], sequence: ["Sequence length", "序列长度"], tokens: ["tokens", "token"],
  batch: ["Global batch", "全局 batch"], batchHint: ["free if empty", "留空则不限"],
  more: ["More", "更多选项"], fusedLoss: ["Fused loss", "融合 loss"], no: ["no", "不用"], yes: ["yes", "使用"], either: ["whichever is better", "自动选择"],
  objective: ["Best at", "优先"], time: ["time", "速度"], memory: ["free memory", "省显存"], target: ["Config for", "配置给谁读"],
  goal: ["Tokens to train on", "训练总 token 数"], goalHint: ["such as 10B", "如 10B"], price: ["Price per GPU hour", "每 GPU 小时价格"], priceHint: ["such as 2.5", "如 2.5"],
  answer: ["Answer", "答案"], recommended: ["Recommended strategy", "推荐方案"], recommendedRow: ["Recommended", "推荐"], nothing: ["Nothing fits", "没有放得下的方案"],
  thinking: ["searching…", "搜索中…"],
  bars: ["GPU memory by ZeRO stage and offload", "各 ZeRO stage 与卸载方式的显存"],
  buckets: ["The recommended strategy has its own bucket sizes; the rows below it have DeepSpeed's defaults.", "推荐方案的 bucket 已按模型调整；其余各行用 DeepSpeed 默认值。"],
  barsWith: ["micro batch {micro}, {tokens} tokens, {how}", "micro batch {micro}，{tokens} token，{how}"],
  recomputing: ["gradient checkpointing", "开启梯度检查点"], keeping: ["no gradient checkpointing", "不用梯度检查点"],
  strategy: ["Strategy", "方案"], gpu: ["GPU", "显存"], host: ["Host per node", "每节点内存"], verdict: ["Verdict", "结论"], barHead: ["What fills it", "由什么占满"],
  limit: ["{bytes} per GPU", "每卡 {bytes}"],
  config: ["DeepSpeed config", "DeepSpeed 配置"], copy: ["Copy", "复制"], copied: ["Copied", "已复制"], download: ["Download", "下载"],
  launch: ["Start it with", "启动命令"], alternatives: ["Alternatives that fit", "也放得下的方案"], fallbacks: ["If it still runs out of memory", "如果仍然显存不足，依次尝试"],
  rejected: ["Not sure to fit, even at its smallest", "缩到最小也不能保证放得下"],
  step: ["One step", "一步训练"], stepMemory: ["Memory over one step", "一步之内的显存"], stepTime: ["Streams over one step", "一步之内各条流"],
  terminal: ["The same answer in a terminal", "在终端里得到同样的答案"],
  checkConfig: ["Your DeepSpeed config", "你的 DeepSpeed 配置"], engineVersion: ["DeepSpeed", "DeepSpeed 版本"], frontEnd: ["Read by", "由谁读取"], guess: ["guess", "自动判断"],
  world: ["GPUs in all", "总卡数"], worldHint: ["any", "未知"], findings: ["Findings", "检查结果"], clean: ["Nothing wrong found", "没有发现问题"],
  fixWith: ["Fix: {title}", "修复：{title}"], accepted: ["accepted", "通过"], fails: ["loads, but the run fails", "能加载，但训练会失败"], refused: ["rejected", "会被拒绝"], example: ["Example", "示例"], why: ["Why", "原因"], help: ["What to do", "怎么办"], line: ["line {line}", "第 {line} 行"],
  learnTitle: ["What every rank holds", "每个 rank 存了什么"], learnLead: ["Exact tensors of {model}, as the engine lays them out. Change the model under Plan.", "{model} 的张量，按引擎的实际布局精确计算。可以在“规划”里换模型。"],
  stage: ["Stage", "Stage"], ranks: ["Ranks", "Rank 数"], play: ["Play", "播放"], pause: ["Pause", "暂停"],
  afterInit: ["After initialization", "初始化之后"], afterBackward: ["After backward", "反向传播之后"], afterStep: ["After the step", "更新之后"], phase: ["Moment", "时刻"],
  film: ["Within one step", "一步之内"], filmLead: ["What each rank holds, stretch by stretch: gathered weights come and go, activations pile up, gradients follow.", "逐段看每个 rank 存了什么：聚合的权重随用随放，激活值逐层累积，梯度随后出现。"],
  filmMoment: ["Moment of the step", "步内时刻"], filmNow: ["{phase}: {bytes}, {gathered} of it gathered from other ranks", "{phase}：共 {bytes}，其中 {gathered} 是从其他 rank 聚合来的"], filmPlain: ["{phase}: {bytes}", "{phase}：共 {bytes}"],
  perRank: ["{bytes} per rank", "每个 rank {bytes}"], folklore: ["What people say, and what holds", "常见说法与事实"], said: ["People say", "常见说法"], holds: ["What holds", "事实"], here: ["With your numbers", "按你的数字"],
  concepts: ["Concepts", "概念"], broken: ["The engine could not be loaded: {error}", "引擎无法加载：{error}"], part: ["Part", "组成"], modelStates: ["model states", "模型状态"],
} as const satisfies Record<string, readonly [string, string]>;

export type Word = keyof typeof WORDS;

export function words(language: Language) {
  return (word: Word, values: Record<string, string | number> = {}): string =>
    WORDS[word][language === "en" ? 0 : 1].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));
}
export type Say = ReturnType<typeof words>;
