// The words of a plan.

export const PLAN_WORDS = {
  summary: ["Summary", "概要"], perGpuFree: ["free per GPU", "每卡剩余显存"], perGpuLacks: ["missing per GPU", "每卡缺少显存"], ofCapacity: ["{need} of {capacity} per GPU.", "每卡 {need}，可用 {capacity}。"], hostNeeded: ["host memory needed per node", "每节点需要的主机内存"],
  perStep: ["per step", "每步"], rates: ["per step; {rate} tokens/s per GPU, MFU {mfu}", "每步；每卡 {rate} token/s，MFU {mfu}"], noSpeed: ["Choose a GPU model to get step times", "选择 GPU 型号后可估算每步用时"],
  toFinish: ["for {tokens}", "训练 {tokens}"], gpuHours: ["{hours} GPU hours", "{hours} GPU 小时"], costOf: ["cost of the run; {hours} GPU hours", "训练费用；{hours} GPU 小时"], noPrice: ["GPU hours; enter a price to get the cost", "GPU 小时；填写价格后可估算费用"], noGoal: ["Enter the tokens to train on", "填写训练总 token 数"],
  gauge: ["GPU memory: {need} of {capacity}", "显存：{need}，可用 {capacity}"], range: ["The band in the bar is the range of the prediction: {bounds}.", "条形中的窄带表示预测范围：{bounds}。"], accuracy: ["How accurate is the prediction?", "预测有多准？"], warning: ["Warning", "警告"],
  facts: ["About this strategy", "方案说明"], whyMemory: ["GPU memory at its peak", "显存峰值"], lower: ["Best ways to lower the peak", "最有效的降低峰值的办法"], whyTime: ["Parts of the step time", "每步用时的构成"],
  remedies: ["Any one of these changes is enough:", "采用以下任意一项即可："], lessTrained: ["These methods train fewer parameters and need less memory:", "以下方式训练的参数更少，需要的显存也更少："], apply: ["Apply", "采用"],
  show: ["Show", "查看"], shown: ["shown below", "正在显示"], otherShown: ["Config, memory and time below are for {strategy}.", "下面显示的是 {strategy} 的配置、显存和时间。"], backToRecommended: ["Back to the recommended strategy", "回到推荐方案"],
  moreMatches: ["{count} more: keep typing", "还有 {count} 个，请继续输入"], beyond: ["beyond the scale", "超出刻度"],
  costObjective: ["cost", "费用"], task: ["Task", "任务"], shares: ["GPUs per sequence", "每条序列的卡数"], letChoose: ["automatic", "自动选择"],
  heldStage: ["ZeRO stage", "ZeRO stage"], heldOffload: ["Offload", "卸载"], heldMicro: ["Micro-batch size", "micro batch"], heldRecompute: ["Gradient checkpointing", "梯度检查点"],
  pin: ["Pin to compare", "固定以便比较"], pinned: ["Pinned", "已固定"], unpin: ["Remove {name}", "移除 {name}"], pinsFull: ["Three answers are pinned already", "已固定三个答案"],
  compare: ["Compare", "比较"], compareLead: ["Pin this answer, change the question, and both appear side by side.", "固定这个答案，再修改问题，两者会并排显示。"], now: ["Current", "当前"],
  rowVerdict: ["Verdict", "结论"], rowStrategy: ["Strategy", "方案"], rowNeed: ["GPU memory", "显存"], rowFree: ["Free per GPU", "每卡剩余"], rowHost: ["Host memory per node", "每节点主机内存"], rowStep: ["Time per step", "每步用时"],
  rowRate: ["Tokens/s per GPU", "每卡 token/s"], rowTokens: ["Tokens", "token 数"], rowDuration: ["Duration", "用时"], rowHours: ["GPU hours", "GPU 小时"], rowCost: ["Cost", "费用"], rowWarnings: ["Warnings", "警告"], rowLength: ["Sequence length", "序列长度"], rowMethod: ["Method", "训练方式"],
  grid: ["GPU model × number of GPUs", "GPU 型号 × 卡数"], gridLead: ["{model}, {tokens}-token sequences, {method}. zeropilot searches each cell while the page is idle. Choose a cell to plan it.", "{model}，序列 {tokens} token，{method}。页面空闲时，zeropilot 逐格搜索。点击单元格即可规划。"],
  gridPrice: ["Costs use the same price for each GPU model: {price} per GPU hour.", "各 GPU 型号按同一价格计算费用：每 GPU 小时 {price}。"], gridProgress: ["{done} of {all} searched", "已搜索 {done} / {all}"], gpuModel: ["GPU model", "GPU 型号"], gpuCount: ["{count} GPUs", "{count} 卡"], oneGpu: ["1 GPU", "1 卡"],
  shortFits: ["fits", "放得下"], shortLow: ["low headroom", "余量小"], shortMay: ["may not fit", "可能放不下"], shortNo: ["does not fit", "放不下"], noAnswer: ["not possible", "不可行"],
  exportAs: ["Save as", "另存为"], copyMarkdown: ["Copy Markdown", "复制 Markdown"], madeBy: ["Predicted by zeropilot {version}", "由 zeropilot {version} 预测"],
} as const satisfies Record<string, readonly [string, string]>;
