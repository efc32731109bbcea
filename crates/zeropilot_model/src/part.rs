//! The parts of a model: what sees, what hears, what joins them to the language model, and that model.

use zeropilot_units::Elements;

use crate::architecture::{Module, Rewriter, TieGroup, rewrite};
use crate::model::Model;

/// What a part of a model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartKind {
    /// It sees.
    Vision,
    /// It hears.
    Audio,
    /// It turns what another part saw or heard into tokens of the language model.
    Projector,
    /// It reads and writes text.
    Language,
}

impl PartKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Vision, Self::Audio, Self::Projector, Self::Language];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Audio => "audio",
            Self::Projector => "projector",
            Self::Language => "language",
        }
    }
}

/// Where a part is: the dotted name of a module, or of a parameter.
pub(crate) type PartPath = (PartKind, &'static str);

/// A part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What it does.
    pub kind: PartKind,
    /// Elements of its parameters, tied ones once.
    pub elements: Elements,
    /// Elements of those that require a gradient.
    pub trainable: Elements,
}

impl Model {
    /// Its parts in the order of [`PartKind`]; a model that reads text alone is one part.
    pub fn parts(&self) -> Vec<Part> {
        let mut sums = Sums { paths: &self.parts, sums: Default::default(), seen: Vec::new() };
        sums.add(&mut String::new(), &self.root, 1);
        let part = |kind: PartKind, (elements, trainable): (u64, u64)| Part {
            kind,
            elements: Elements(elements),
            trainable: Elements(trainable),
        };
        let parts = PartKind::ALL.into_iter().zip(sums.sums).map(|(kind, sums)| part(kind, sums));
        parts.filter(|part| part.elements.0 > 0).collect()
    }

    /// The model with a part frozen, as training frameworks do it: all of the part's module.
    ///
    /// Qwen's tower holds its mergers, so freezing [`PartKind::Vision`] freezes them as well, although they count as
    /// [`PartKind::Projector`]. In LLaVA, Gemma 3 and InternVL the projector is a module of its own and stays trainable.
    #[must_use]
    pub fn freeze_part(&self, kind: PartKind) -> Self {
        let root = rewrite("", &self.root, &mut FreezePart { paths: &self.parts, kind });
        // Freezing adds no element, so a sum that fitted fits again.
        let count = root.count().unwrap_or(self.count);
        Self { root, count, ..self.clone() }
    }
}

/// Whether a dotted name is at a path or below it.
fn is_at(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a name is in the module of a part, or in a part that this module holds.
pub(crate) fn is_in(name: &str, kind: PartKind, paths: &[(PartKind, String)]) -> bool {
    match kind {
        PartKind::Language => kind_of(name, paths) == PartKind::Language,
        kind => paths.iter().any(|(own, path)| *own == kind && is_at(name, path)),
    }
}

/// The kind of the innermost part a name belongs to.
fn kind_of(name: &str, paths: &[(PartKind, String)]) -> PartKind {
    let around = paths.iter().filter(|(_, path)| is_at(name, path));
    around.max_by_key(|(_, path)| path.len()).map_or(PartKind::Language, |(kind, _)| *kind)
}

/// Elements by kind, all and trainable; repeats are counted, not visited.
struct Sums<'a> {
    paths: &'a [(PartKind, String)],
    sums: [(u64, u64); 4],
    seen: Vec<TieGroup>,
}

impl Sums<'_> {
    fn add(&mut self, name: &mut String, module: &Module, times: u64) {
        let own = name.len();
        for parameter in &module.parameters {
            if let Some(group) = parameter.tie {
                if self.seen.contains(&group) {
                    continue;
                }
                self.seen.push(group);
            }
            extend(name, &parameter.name);
            let kind = kind_of(name, self.paths);
            name.truncate(own);
            let elements = parameter.elements().unwrap_or(u64::MAX).saturating_mul(times);
            if let Some((all, trainable)) = self.sums.get_mut(kind as usize) {
                *all = all.saturating_add(elements);
                *trainable =
                    trainable.saturating_add(if parameter.trainable { elements } else { 0 });
            }
        }
        for child in &module.children {
            extend(name, &child.name.part(0));
            self.add(name, &child.module, times.saturating_mul(child.name.count()));
            name.truncate(own);
        }
    }
}

fn extend(name: &mut String, part: &str) {
    if !name.is_empty() {
        name.push('.');
    }
    name.push_str(part);
}

/// Takes the gradient from every parameter in and below the modules of a part.
struct FreezePart<'a> {
    paths: &'a [(PartKind, String)],
    kind: PartKind,
}

impl Rewriter for FreezePart<'_> {
    fn minds_numbers(&self) -> bool {
        false
    }

    fn rewrite(&mut self, name: &str, mut module: Module) -> Module {
        for parameter in &mut module.parameters {
            let mut full = name.to_owned();
            extend(&mut full, &parameter.name);
            parameter.trainable &= !is_in(&full, self.kind, self.paths);
        }
        module
    }
}
