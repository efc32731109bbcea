use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::one_rank::shown;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, Function, Guard, PythonScript};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3};

pub(crate) static RULE: Rule = Rule {
    code: "H14",
    name: "module-on-some-ranks",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "`forward` runs a layer only for some batches",
        "`forward` 只对部分 batch 运行某个层",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#5066"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.trunk = nn.Linear(8, 8)\n        self.head = nn.Linear(8, 8)\n    def forward(self, x, mask):\n        x = self.trunk(x)\n        if mask.any():\n            x = x + self.head(x)\n        return x.mean()\nengine, _, _, _ = deepspeed.initialize(model=Model(), config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.trunk = nn.Linear(8, 8)\n        self.block = nn.Linear(8, 8)\n    def forward(self, x):\n        x = self.trunk(x)\n        if self.training and random.random() < 0.5:\n            return x\n        return self.block(x)\nengine, _, _, _ = deepspeed.initialize(model=Model(), config='ds.json')\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.trunk = nn.Linear(8, 8)\n        self.head = nn.Linear(8, 8)\n    def forward(self, x, mask):\n        x = self.trunk(x)\n        return (x + self.head(x) * mask.any()).mean()\nengine, _, _, _ = deepspeed.initialize(model=Model(), config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        // Both branches run it.
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(8, 8)\n    def forward(self, x, mask):\n        if mask.any():\n            return self.head(x[mask]).mean()\n        return self.head(x).mean() * 0\nengine, _, _, _ = deepspeed.initialize(model=Model(), config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Model(nn.Module):\n    def __init__(self, deep):\n        super().__init__()\n        self.deep = deep\n        self.trunk = nn.Linear(8, 8)\n        self.head = nn.Linear(8, 8)\n        self.drop = nn.Dropout(0.1)\n    def forward(self, x, labels=None):\n        x = self.trunk(x)\n        if self.deep:\n            x = self.head(x)\n        if x.sum() > 0:\n            x = self.drop(x)\n        return x.mean()\nengine, _, _, _ = deepspeed.initialize(model=Model(True), config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.trunk = nn.Linear(8, 8)\n        self.head = nn.Linear(8, 8)\n    def forward(self, x, mask):\n        x = self.trunk(x)\n        if mask.any():\n            x = x + self.head(x)\n        return x.mean()\nmodel = Model()\ndeepspeed.utils.set_z3_leaf_modules(model, [Model])\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if `{condition}`, which each rank evaluates on its own batch",
        "`{call}` 只在 `{condition}` 时运行，而各 rank 按自己的 batch 判断",
    ),
    why: Text::new(
        "All ranks must gather the weights of a layer together in stage 3, and reduce the same gradients in stages 1 and 2. If the batch of one rank does not need the layer, the other ranks wait, or gradients of different layers are mixed.",
        "在 ZeRO stage 3 下，所有 rank 必须一起聚合每一层的权重；在 stage 1 和 2 下，所有 rank 必须规约相同参数的梯度。某个 rank 的 batch 不需要这一层时，其他 rank 会一直等待，或者不同层的梯度会混在一起。",
    ),
    help: Text::new(
        "run the layer on all ranks and multiply its output by 0 where the layer is not needed",
        "让所有 rank 都运行这一层，不需要时把它的输出乘以 0",
    ),
};

/// Layers without parameters: nothing is gathered or reduced for them.
const WITHOUT_PARAMETERS: [&str; 14] = [
    "Dropout",
    "ReLU",
    "GELU",
    "SiLU",
    "Tanh",
    "Sigmoid",
    "Softmax",
    "Identity",
    "Flatten",
    "Loss",
    "Pool",
    "Upsample",
    "Fold",
    "LogSoftmax",
];

/// Layers that a class makes, by what they are called in its methods, with what makes them.
pub(super) fn layers<'s>(
    script: &'s PythonScript,
    class: &'s str,
) -> impl Iterator<Item = (&'s str, &'s str)> {
    let own = script.functions.iter().filter(move |function| {
        function.class.as_ref().is_some_and(|(name, _)| name == class)
            && function.name == "__init__"
    });
    own.flat_map(move |made| {
        let set = script.assignments.iter().filter(move |it| it.scope == made.scope);
        let layers =
            set.filter(|it| it.target.starts_with("self.") && makes_layer(script, &it.value));
        layers.map(|it| (it.target.as_str(), it.value.as_str()))
    })
}

/// Whether an expression makes a layer with parameters.
fn makes_layer(script: &PythonScript, value: &str) -> bool {
    let Some((callee, _)) = value.split_once('(') else { return false };
    let name = callee.rsplit('.').next().unwrap_or(callee);
    let of_torch = callee.starts_with("nn.") || callee.starts_with("torch.nn.");
    let is_own = script.functions.iter().any(|function| {
        let class = function.class.as_ref();
        class.is_some_and(|(class, bases)| class == callee && bases.contains("Module"))
    });
    let is_pretrained = callee.ends_with(".from_pretrained");
    (of_torch || is_own || is_pretrained)
        && !WITHOUT_PARAMETERS.iter().any(|without| name.contains(without))
        && name != "Parameter"
}

/// Methods that PyTorch calls to run a module.
pub(super) fn forwards(script: &PythonScript) -> impl Iterator<Item = (&Function, &str)> {
    script.functions.iter().filter_map(|function| {
        let (class, bases) = function.class.as_ref()?;
        (function.name == "forward" && bases.contains("Module"))
            .then_some((function, class.as_str()))
    })
}

/// Whether what a condition asks differs from batch to batch or from rank to rank.
pub(super) fn is_of_batch(guard: &Guard) -> bool {
    let text = guard.condition.as_str();
    let of_values = [".any()", ".all()", ".numel()", ".item()", ".nonzero(", ".count_nonzero("];
    let of_chance = ["random.random(", "torch.rand(", "np.random.", "random.uniform("];
    let is_sum = text.contains(".sum()");
    is_sum
        || of_values.iter().any(|word| text.contains(word))
        || of_chance.iter().any(|word| text.contains(word))
}

/// What sees to it that ranks stay together.
pub(super) fn is_seen_to(training: &Training<'_>) -> bool {
    let named = |words: [&str; 4]| {
        training.script.calls.iter().any(|call| words.iter().any(|word| call.callee.contains(word)))
    };
    named(["set_z3_leaf_module", "all_reduce", "broadcast", "all_gather"])
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let is_zero = training.stage().is_some_and(|stage| stage >= 1);
        if !is_zero || is_seen_to(&training) {
            continue;
        }
        let script = training.script;
        for (function, class) in forwards(script) {
            let calls: Vec<&Call> =
                script.calls.iter().filter(|call| call.scope == function.scope).collect();
            for (layer, _) in layers(script, class) {
                let mut runs = calls.iter().filter(|call| call.callee == layer);
                let (Some(call), None) = (runs.next(), runs.next()) else { continue };
                let is_passed =
                    calls.iter().any(|other| other.span != call.span && mentions(other, layer));
                let guard = call.guards.iter().find(|guard| is_of_batch(guard));
                if let Some(guard) = guard.filter(|_| !is_passed) {
                    let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                        .with("call", layer)
                        .with("condition", shown(guard));
                    found.at(&training.place(call.span), diagnostic);
                }
            }
        }
    }
}

/// Whether a call is on a layer otherwise: `self.head.weight.sum()`.
fn mentions(call: &Call, layer: &str) -> bool {
    call.callee.strip_prefix(layer).is_some_and(|rest| rest.starts_with('.'))
}
