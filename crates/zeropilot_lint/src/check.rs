//! From the bytes of a file to a verdict: reading, filling by the front end, resolution by the
//! engine, and the rules over all of it.

use num_traits::ToPrimitive;
use zeropilot_config::front_end::{self, Filled, FrontEnd, Pending};
use zeropilot_config::problem::{Problem, ProblemKind};
use zeropilot_config::python::PyValue;
use zeropilot_config::resolve::{
    Accelerator, Circumstances, Resolution, ResolvedConfig, Source, resolve,
};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{
    Document, Member, Node, Span, SyntaxError, Value, decode, parse_hjson, parse_json,
};

use crate::data_parallel::Groups;
use crate::diagnostic::Diagnostic;
use crate::key_values::KeyValues;
use crate::refusal;
use crate::registry::{CHECKS, Check};
use crate::report::{MAX_FINDINGS, Report, ResolvedValues, Verdict};
use crate::rules::auto::is_genuine;
use crate::selection::without_suppressed;
use crate::settings::Settings;
use crate::subject::Subject;
use crate::world::{World, WorldSource};

const BATCH_KEYS: [&str; 3] =
    ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"];

/// Engines up to 0.14 take any text for a switch that is on, `"auto"` too.
const PRECISION_KEYS: [&str; 2] = ["fp16.enabled", "bf16.enabled"];

/// Judges a config file.
pub fn check(bytes: &[u8], settings: &Settings) -> Report {
    let (text, undecodable) = match decode(bytes) {
        Ok(text) => (text, None),
        Err(error) => ("", Some(error)),
    };
    let hjson = parse_hjson(text);
    let front_end =
        settings.front_end.unwrap_or_else(|| guess_front_end(text, hjson.as_ref().ok()));
    let mut report = Report {
        verdict: Verdict::Reject,
        resolved: None,
        partial: None,
        diagnostics: Vec::new(),
        fixed: Vec::new(),
        known: Vec::new(),
        pending: Vec::new(),
        version: settings.version,
        front_end,
        front_end_guessed: settings.front_end.is_none(),
        world: World::given_or_one(settings.world_size),
    };
    if let Some(error) = undecodable {
        report.diagnostics.push(refusal::syntax(&error, front_end));
        return report;
    }
    match read(text, hjson, front_end) {
        Reading::Whole(document) => {
            let is_guess = front_end == FrontEnd::DeepSpeed
                && report.front_end_guessed
                && !text.trim().is_empty();
            let error = if is_guess { parse_json(text).err() } else { None };
            let other_readers = error.map(|error| refusal::not_for_others(&error));
            judge(&document, settings, other_readers, &mut report);
        }
        Reading::NotStrict(document, diagnostic) => {
            judge(&document, settings, None, &mut report);
            refuse(&mut report, diagnostic);
        }
        Reading::Unreadable(diagnostic) => report.diagnostics = vec![diagnostic],
    }
    report.diagnostics.retain(|found| settings.selection.wants(found.rule.code));
    report
}

/// Adds a refusal that comes before everything else in the file is even looked at.
fn refuse(report: &mut Report, diagnostic: Diagnostic) {
    report.verdict = Verdict::Reject;
    report.partial = report.resolved.take().or(report.partial.take());
    report.diagnostics.insert(0, diagnostic);
}

/// Who reads a file, as far as it shows: placeholders are made for the HF Trainer.
pub fn guess_front_end(text: &str, document: Option<&Document>) -> FrontEnd {
    let has_auto = match document {
        Some(document) => text.contains("auto") && holds_auto(document.root(), &mut Vec::new()),
        None => text.contains("\"auto\""),
    };
    if has_auto { FrontEnd::HfTrainer } else { FrontEnd::DeepSpeed }
}

/// Whether a placeholder stands anywhere, the two `"auto"` aside that the engine itself knows.
fn holds_auto<'n>(node: &'n Node, path: &mut Vec<&'n str>) -> bool {
    match &node.value {
        Value::Str(text) => text == "auto" && !is_genuine(path),
        Value::Object(members) => members.iter().any(|member| {
            path.push(&member.key);
            let found = holds_auto(&member.value, path);
            path.pop();
            found
        }),
        _ => false,
    }
}

/// What the front end's reader makes of a text.
enum Reading {
    /// A document.
    Whole(Document),
    /// A refusal, but DeepSpeed's own reader takes the text: what it says can be judged all the same.
    NotStrict(Document, Diagnostic),
    /// A refusal by every reader.
    Unreadable(Diagnostic),
}

fn read(text: &str, hjson: Result<Document, SyntaxError>, front_end: FrontEnd) -> Reading {
    if front_end == FrontEnd::DeepSpeed {
        return match hjson {
            Ok(document) => Reading::Whole(document),
            Err(error) => Reading::Unreadable(refusal::syntax(&error, front_end)),
        };
    }
    match (parse_json(text), hjson) {
        (Ok(document), _) => Reading::Whole(document),
        (Err(error), Ok(document)) => {
            let diagnostic = refusal::not_strict(&error, text, front_end);
            Reading::NotStrict(document, diagnostic)
        }
        (Err(error), Err(_)) => Reading::Unreadable(refusal::syntax(&error, front_end)),
    }
}

fn judge(
    document: &Document,
    settings: &Settings,
    other_readers: Option<Diagnostic>,
    report: &mut Report,
) {
    let duplicates = document.duplicate_keys();
    let deduplicated;
    let root = if duplicates.is_empty() {
        document.root()
    } else {
        deduplicated = without_duplicates(document.root());
        &deduplicated
    };
    let outcome = pass(root, settings, report.front_end, &mut report.world);
    let subject = Subject {
        text: document.text(),
        root,
        comments: document.comments(),
        version: settings.version,
        front_end: report.front_end,
        is_reader_guessed: report.front_end_guessed,
        world: report.world,
        arguments: &settings.arguments,
        script: &settings.script,
        packages: &settings.packages,
        says_auto: document.text().contains("auto"),
    };
    let mut found = Vec::from_iter(other_readers);
    for duplicate in duplicates.iter().take(MAX_FINDINGS) {
        found.push(refusal::duplicate_key(duplicate, document.root(), &subject));
    }
    found.extend(outcome.refusals.iter().map(|problem| refusal::front_end(problem, &subject)));
    let is_elastic = |problem: &&Problem| matches!(problem.kind, ProblemKind::Elasticity(_));
    let elastic = outcome.problems.iter().any(|problem| is_elastic(&problem));
    for problem in &outcome.problems {
        // Elastic training that does not work out leaves the batch open: one cause, one finding.
        if !(elastic && problem.kind == ProblemKind::BatchUndetermined) {
            found.push(refusal::engine(problem, &subject));
        }
    }
    for (_, check) in CHECKS {
        match (check, &outcome.resolved) {
            (Check::Config(check), _) => check(&subject, &mut found),
            (Check::Resolved(check), Some(resolved)) => check(&subject, resolved, &mut found),
            _ => {}
        }
    }
    found.sort_by(|a, b| {
        (a.span.start, a.severity, a.rule.code).cmp(&(b.span.start, b.severity, b.rule.code))
    });
    without_suppressed(document, &mut found);
    found.truncate(MAX_FINDINGS);
    report.diagnostics = found;

    let refused_duplicates = report.front_end == FrontEnd::DeepSpeed && !duplicates.is_empty();
    if outcome.resolved.is_some() && !refused_duplicates {
        report.verdict = Verdict::Accept;
        report.resolved = outcome.resolved;
    } else {
        report.partial = outcome.partial;
    }
    report.pending = outcome.pending;
}

/// What the front end and the engine make of a tree.
#[derive(Default)]
struct Outcome {
    refusals: Vec<front_end::Problem>,
    pending: Vec<Pending>,
    problems: Vec<Problem>,
    resolved: Option<ResolvedValues>,
    /// What the values become without the keys that are refused.
    partial: Option<ResolvedValues>,
}

fn pass(root: &Node, settings: &Settings, front_end: FrontEnd, world: &mut World) -> Outcome {
    let world_size = settings.world_size.and_then(|size| size.to_u64());
    let filled = (front_end != FrontEnd::DeepSpeed).then(|| {
        let model = settings.model.as_ref();
        front_end::fill(front_end, root, &settings.arguments, model, world_size)
    });
    let seen = filled.as_ref().map_or(root, |filled| &filled.root);
    let circumstances = |size| Circumstances {
        version: settings.version,
        world_size: size,
        source: match front_end {
            FrontEnd::DeepSpeed => Source::File,
            _ => Source::Dictionary,
        },
        accelerator: Accelerator::Cuda,
    };
    let groups = Groups::new(settings.script.sharing, front_end);
    let by_unit = groups.without_key(seen);
    let seen = by_unit.as_ref().unwrap_or(seen);
    let copy = groups.ranks_of_one(seen);
    if world.source == WorldSource::Assumed {
        world.size = world.size.max(copy);
    }
    let mut resolution = resolve(seen, circumstances(groups.count(world.size, seen)));
    if world.source == WorldSource::Assumed
        && let Some(size) =
            fitting_world(&resolution.problems).and_then(|size| size.checked_mul(copy))
    {
        *world = World { size, source: WorldSource::Inferred };
        resolution = resolve(seen, circumstances(groups.count(size, seen)));
    }
    let is_settled = groups.is_settled(root);
    let settled = |values: ResolvedValues| if is_settled { values } else { values.unsettled(root) };
    let Some(known) = &filled else {
        let problems = resolution.problems;
        let resolved = resolution.resolved.map(|it| settled(whole_values(it, Vec::new())));
        let partial = match resolved {
            Some(_) => None,
            None => without_refused(seen, None, &problems, circumstances(world.size)).map(settled),
        };
        return Outcome { problems, resolved, partial, ..Outcome::default() };
    };
    let mut problems = own_problems(resolution.problems, known);
    if !is_settled {
        // The framework fills for ranks that share nothing, and accelerate divides afterwards.
        problems.retain(|problem| !matches!(problem.kind, ProblemKind::BatchMismatch(_)));
    }
    let is_refused = !known.problems.is_empty() || !problems.is_empty();
    let resolved = match resolution.resolved {
        _ if is_refused => None,
        Some(resolved) => Some(resolved_values(resolved, known)),
        None => resolve_without_pending(known, circumstances(world.size)),
    };
    let resolved = resolved.map(settled);
    let partial = match resolved {
        Some(_) => None,
        None => without_refused(seen, Some(known), &problems, circumstances(world.size)),
    };
    let partial = partial.map(settled);
    let (refusals, pending) = filled.map(|it| (it.problems, it.pending)).unwrap_or_default();
    Outcome { refusals, pending, problems, resolved, partial }
}

impl ResolvedValues {
    /// The batch where only the run knows among how many groups it is divided: what is written, and nothing that
    /// follows from their number.
    fn unsettled(mut self, root: &Node) -> Self {
        let written = |key: &str| {
            let node = root.get(key)?;
            matches!(node.value, Value::Int(_) | Value::Float(_)).then(|| PyValue::from(node))
        };
        let [train, micro, steps] = BATCH_KEYS.map(written);
        // Without a global batch, one step is what is not written.
        if train.is_some() || steps.is_some() {
            self.gradient_accumulation_steps = steps;
        }
        self.train_batch_size = train;
        self.shares_samples = true;
        if micro.is_some() || self.train_batch_size.is_some() {
            self.micro_batch_size = micro;
        }
        self
    }
}

/// The number of ranks, above one, for which three written batch sizes multiply.
fn fitting_world(problems: &[Problem]) -> Option<usize> {
    let numbers = problems.iter().find_map(|problem| match &problem.kind {
        ProblemKind::BatchMismatch(numbers) => Some(numbers),
        _ => None,
    })?;
    let whole = |value: &Option<PyValue>| match value {
        Some(PyValue::Int(value)) => value.to_usize(),
        _ => None,
    };
    let per_rank = whole(&numbers.micro)?.checked_mul(whole(&numbers.accumulation)?)?;
    let train = whole(&numbers.train)?;
    (per_rank > 0 && train % per_rank == 0 && train > per_rank).then(|| train / per_rank)
}

/// The engine's reasons, without those that only come from values the front end has yet to fill.
fn own_problems(problems: Vec<Problem>, filled: &Filled) -> Vec<Problem> {
    let batch_open = BATCH_KEYS.iter().any(|key| filled.is_pending(key));
    let precision_open = PRECISION_KEYS.iter().any(|key| filled.is_pending(key));
    let refused = !filled.problems.is_empty();
    let is_open = |problem: &Problem| {
        let path = problem.path.to_string();
        match problem.kind {
            ProblemKind::AutoUnfilled => refused || filled.is_pending(&path),
            ProblemKind::WrongValue { .. } => {
                filled.is_pending(&path) || filled.problems.iter().any(|other| other.path == path)
            }
            ProblemKind::BatchUndetermined
            | ProblemKind::BatchNotPositive(_)
            | ProblemKind::BatchMismatch(_)
            | ProblemKind::BatchArithmetic => batch_open || refused,
            ProblemKind::BothPrecisions => precision_open || refused,
            _ => false,
        }
    };
    problems.into_iter().filter(|problem| !is_open(problem)).collect()
}

/// Resolves a tree in which keys still wait for their values.
fn resolve_without_pending(
    filled: &Filled,
    circumstances: Circumstances,
) -> Option<ResolvedValues> {
    let mut root = filled.root.clone();
    for pending in &filled.pending {
        remove(&mut root, &pending.path);
    }
    if BATCH_KEYS.iter().any(|key| filled.is_pending(key)) {
        assume_batch(&mut root);
    }
    let Resolution { resolved, .. } = resolve(&root, circumstances);
    Some(resolved_values(resolved?, filled))
}

/// Values that hang on no key that is refused: those keys and all sizes of the batch that are not written are open.
fn without_refused(
    seen: &Node,
    filled: Option<&Filled>,
    problems: &[Problem],
    circumstances: Circumstances,
) -> Option<ResolvedValues> {
    let refused = filled.into_iter().flat_map(|filled| &filled.problems);
    let mut open: Vec<String> = refused
        .flat_map(|problem| match problem.kind {
            front_end::ProblemKind::BothPrecisions { .. } => both_precisions(),
            _ => vec![problem.path.clone()],
        })
        .filter(|path| !path.is_empty())
        .collect();
    if let Some(filled) = filled {
        open.extend(filled.pending.iter().map(|pending| pending.path.clone()));
    }
    open.extend(refused_paths(problems)?);
    let own: Vec<String> = open.clone();
    let mut root = seen.clone();
    // Problems that others hid come to light one after the other.
    for _ in 0..MAX_ROUNDS {
        open.iter().for_each(|path| remove(&mut root, path));
        assume_batch(&mut root);
        let resolution = resolve(&root, circumstances);
        if let Some(resolved) = resolution.resolved {
            let version = resolved.version();
            let written = |key: &str| {
                let node = seen.get(key).filter(|_| !own.iter().any(|path| path == key))?;
                matches!(node.value, Value::Int(_) | Value::Float(_)).then(|| PyValue::from(node))
            };
            let [train, micro, steps] = BATCH_KEYS.map(written);
            let keys = BATCH_KEYS.into_iter().map(str::to_owned);
            let mut values = whole_values(resolved, open.iter().cloned().chain(keys).collect());
            values.train_batch_size = train;
            values.micro_batch_size = micro;
            values.gradient_accumulation_steps = steps;
            for path in open.iter().filter_map(|path| path.strip_prefix("zero_optimization.")) {
                set_auto(&mut values.zero_optimization, path, version);
            }
            return Some(values);
        }
        let known = open.len();
        let more = refused_paths(&resolution.problems)?;
        open.extend(more.into_iter().filter(|path| !own.contains(path)));
        if open.len() == known {
            return None;
        }
    }
    None
}

/// How often keys are taken out before a file is given up.
const MAX_ROUNDS: usize = 4;

fn both_precisions() -> Vec<String> {
    vec!["fp16".to_owned(), "bf16".to_owned()]
}

/// The keys that problems are about, sizes of the batch that do not multiply aside; `None` if it is the file as a whole.
fn refused_paths(problems: &[Problem]) -> Option<Vec<String>> {
    let mut paths = Vec::new();
    for problem in problems {
        match problem.kind {
            ProblemKind::BatchUndetermined
            | ProblemKind::BatchNotPositive(_)
            | ProblemKind::BatchMismatch(_)
            | ProblemKind::BatchArithmetic => {}
            ProblemKind::BothPrecisions => paths.extend(both_precisions()),
            _ => paths.push(problem.path.to_string()),
        }
    }
    (!paths.iter().any(String::is_empty)).then_some(paths)
}

/// Replaces the sizes of the batch by one that every number of ranks accepts.
fn assume_batch(root: &mut Node) {
    BATCH_KEYS.iter().for_each(|key| remove(root, key));
    if let Value::Object(members) = &mut root.value {
        let span = Span::default();
        let value = Node { span, value: Value::Int(1.into()) };
        members.push(Member { key: BATCH_KEYS[1].to_owned(), key_span: span, value });
    }
}

fn remove(root: &mut Node, path: &str) {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let parts = section.split('.').filter(|part| !part.is_empty());
    let object = parts.into_iter().try_fold(root, |node, part| match &mut node.value {
        Value::Object(members) => {
            members.iter_mut().find(|member| member.key == part).map(|member| &mut member.value)
        }
        _ => None,
    });
    if let Some(Node { value: Value::Object(members), .. }) = object {
        members.retain(|member| member.key != key);
    }
}

/// The values of a config in which nothing but the named keys is open.
fn whole_values(resolved: ResolvedConfig, open: Vec<String>) -> ResolvedValues {
    let zero_optimization = resolved.zero_optimization();
    ResolvedValues {
        train_batch_size: Some(resolved.train_batch_size()),
        micro_batch_size: Some(resolved.micro_batch_size()),
        gradient_accumulation_steps: Some(resolved.gradient_accumulation_steps()),
        shares_samples: false,
        stage: stage_of(&zero_optimization),
        zero_optimization,
        keys: KeyValues::new(resolved, open),
    }
}

fn resolved_values(resolved: ResolvedConfig, filled: &Filled) -> ResolvedValues {
    let version = resolved.version();
    let mut values = whole_values(resolved, open_keys(filled));
    if BATCH_KEYS.iter().any(|key| filled.is_pending(key)) {
        // Half of an open equation: what is written is known, what would follow from it is not.
        let [train, micro, accumulation] = BATCH_KEYS.map(|key| written_number(filled, key));
        values.train_batch_size = train;
        values.micro_batch_size = micro;
        values.gradient_accumulation_steps = accumulation;
    }
    for pending in &filled.pending {
        if let Some(path) = pending.path.strip_prefix("zero_optimization.") {
            set_auto(&mut values.zero_optimization, path, version);
        }
    }
    values
}

fn written_number(filled: &Filled, key: &str) -> Option<PyValue> {
    let node = filled.root.get(key)?;
    matches!(node.value, Value::Int(_) | Value::Float(_)).then(|| PyValue::from(node))
}

/// Keys whose values are not known before the script runs, or hang on such keys.
fn open_keys(filled: &Filled) -> Vec<String> {
    let mut open: Vec<String> = filled.pending.iter().map(|pending| pending.path.clone()).collect();
    if BATCH_KEYS.iter().any(|key| filled.is_pending(key)) {
        let unknown = BATCH_KEYS.into_iter().filter(|key| written_number(filled, key).is_none());
        open.extend(unknown.map(str::to_owned));
    }
    open
}

fn stage_of(zero: &PyValue) -> u8 {
    match zero.get("stage") {
        Some(PyValue::Int(stage)) => stage.to_u8().unwrap_or(0),
        _ => 0,
    }
}

/// Shows a pending key of the ZeRO section under the engine's name for it.
fn set_auto(zero: &mut PyValue, path: &str, version: EngineVersion) {
    let field = version
        .schema()
        .section_model("zero_optimization")
        .and_then(|model| model.field_for_key(path))
        .map_or(path, |field| field.name.as_str());
    if zero.get(field).is_some() {
        zero.set(field, PyValue::str("auto"));
    }
}

/// One value per key, as Python keeps them: the last value, at the place of the first.
fn without_duplicates(node: &Node) -> Node {
    let value = match &node.value {
        Value::Array(items) => Value::Array(items.iter().map(without_duplicates).collect()),
        Value::Object(members) => {
            let mut places = std::collections::HashMap::with_capacity(members.len());
            let mut kept: Vec<Member> = Vec::with_capacity(members.len());
            for member in members {
                let member = Member {
                    key: member.key.clone(),
                    key_span: member.key_span,
                    value: without_duplicates(&member.value),
                };
                let place = *places.entry(member.key.clone()).or_insert(kept.len());
                match kept.get_mut(place) {
                    Some(earlier) => *earlier = member,
                    None => kept.push(member),
                }
            }
            Value::Object(kept)
        }
        other => other.clone(),
    };
    Node { span: node.span, value }
}
