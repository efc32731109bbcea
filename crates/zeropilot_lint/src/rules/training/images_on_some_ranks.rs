use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{PythonScript, SetMember};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3};

pub(crate) static RULE: Rule = Rule {
    code: "H09",
    name: "images-on-some-ranks",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "only some ranks pass images to the model",
        "只有部分 rank 的 batch 带图像",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "def collate(rows):\n    batch = tokenize(rows)\n    images = [row['image'] for row in rows if 'image' in row]\n    if images:\n        batch['pixel_values'] = prepare(images)\n    return batch\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "def collate(rows):\n    batch = tokenize(rows)\n    if any('image' in row for row in rows):\n        batch['pixel_values'] = prepare(rows)\n    return batch\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "def collate(rows):\n    batch = tokenize(rows)\n    batch['pixel_values'] = prepare([row['image'] for row in rows])\n    return batch\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "def collate(rows):\n    batch = tokenize(rows)\n    images = [row['image'] for row in rows if 'image' in row]\n    if images:\n        batch['pixel_values'] = prepare(images)\n    else:\n        batch['pixel_values'] = torch.zeros(1, 3, 224, 224)\n    return batch\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "def collate(rows):\n    batch = tokenize(rows)\n    images = [row['image'] for row in rows if 'image' in row]\n    if images:\n        batch['pixel_values'] = prepare(images)\n    return batch\nmodel.visual.requires_grad_(False)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nfor batch in loader:\n    if 'pixel_values' in batch:\n        batch['pixel_values'] = batch['pixel_values'].bfloat16()\n    engine.backward(engine(**batch))\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "def collate(rows):\n    batch = tokenize(rows)\n    if args.with_images:\n        batch['pixel_values'] = prepare(rows)\n    return batch\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`pixel_values` is set only under a condition; a rank without an image stops the whole run",
        "`pixel_values` 只在满足条件时设置；只要有一个 rank 没有图像，整个训练就会卡住或报错",
    ),
    why: Text::new(
        "All ranks must gather the weights of the vision tower together in stage 3, and reduce its gradients together in stages 1 and 2. A rank without an image does not run the tower, so the others wait for this rank or fail.",
        "在 ZeRO stage 3 下，所有 rank 必须一起聚合视觉塔的权重；在 stage 1 和 2 下，必须一起规约它的梯度。没有图像的 rank 不会运行视觉塔，其他 rank 会一直等待或报错。",
    ),
    help: Text::new(
        "put an image in every micro-batch (a dummy whose features are multiplied by 0), or group samples by modality over all ranks",
        "让每个 micro batch 都带一张图像（可用占位图，把它的特征乘以 0），或在所有 rank 上统一按模态对样本分组",
    ),
};

/// Words of scripts that see to it.
const SEEN_TO: [&str; 4] = ["dummy", "placeholder", "modality", "Image.new"];

/// Words of scripts that may train without the tower.
const FROZEN: [&str; 5] = ["requires_grad", "freeze", "frozen", "peft", "Lora"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let Some(text) = (job.files)(training.name).filter(|text| may_part(&training, text)) else {
            continue;
        };
        if SEEN_TO.iter().any(|word| text.contains(word)) {
            continue;
        }
        for member in only_sometimes(training.script) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", member.span);
            found.at(&training.place(member.span), diagnostic);
        }
    }
}

/// Whether ranks must run the tower together.
fn may_part(training: &Training<'_>, text: &str) -> bool {
    match training.stage() {
        Some(3) => true,
        Some(1 | 2) => !FROZEN.iter().any(|word| text.contains(word)),
        _ => false,
    }
}

/// Images that a function adds under a condition about images, and nowhere else.
fn only_sometimes(script: &PythonScript) -> impl Iterator<Item = &SetMember> {
    let of_images = |member: &&SetMember| member.name == "pixel_values";
    script.members.iter().filter(of_images).filter(move |member| {
        let in_function = script.members.iter().filter(|other| other.scope == member.scope);
        in_function.filter(of_images).count() == 1
            && member.questions.iter().any(|asked| asks_for_images(asked))
    })
}

/// Whether a condition is about the images of one batch: a switch of the script, a type or what a whole dataset has
/// holds for all ranks alike.
fn asks_for_images(question: &str) -> bool {
    let of_all = [".", "[0]", "pixel_values", "isinstance", "processor", "size", "use_", "column"];
    question.to_lowercase().contains("image") && !of_all.iter().any(|it| question.contains(it))
}
