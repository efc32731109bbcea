//! A config that was wished for, written out and judged by our own rules.

use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Report, Settings, Severity, Verdict, check};
use zeropilot_plan::{Recipe, Refusal, Request, Tier};

/// A config that may be handed over.
#[derive(Debug)]
pub struct Draft {
    /// What it says.
    pub recipe: Recipe,
    /// Which of several sizes it is.
    pub tier: Option<Tier>,
    /// Its text.
    pub text: String,
}

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum CreateProblem {
    /// The wishes contradict each other.
    #[error("the options contradict each other")]
    Refused(Vec<Refusal>),
    /// The engine would not take it, or would not read all of it.
    #[error("DeepSpeed would reject the config")]
    Findings {
        /// The text.
        text: String,
        /// What is wrong with it.
        report: Box<Report>,
    },
}

/// Writes what is wished for, in one size or in all three. What is written passes `zeropilot check` for this engine
/// and the program that will read it; what cannot be known before is a key the engine does not have.
///
/// # Errors
///
/// If the options contradict each other, or the engine would not take the result.
pub fn create(
    request: &Request,
    version: EngineVersion,
    in_tiers: bool,
) -> Result<Vec<Draft>, CreateProblem> {
    let recipe = request.recipe().map_err(CreateProblem::Refused)?;
    let drafts: Vec<Draft> = match in_tiers {
        false => vec![draft(recipe, None)],
        true => Tier::ALL.map(|tier| draft(recipe.tier(tier), Some(tier))).into(),
    };
    drafts.iter().try_for_each(|draft| judge(draft, version))?;
    Ok(drafts)
}

fn draft(recipe: Recipe, tier: Option<Tier>) -> Draft {
    // Text keys only, so that it cannot fail.
    let text = serde_json::to_string_pretty(&recipe.config()).unwrap_or_default() + "\n";
    Draft { recipe, tier, text }
}

fn judge(draft: &Draft, version: EngineVersion) -> Result<(), CreateProblem> {
    let world = draft.recipe.batch.world;
    let settings = Settings {
        version,
        world_size: world.and_then(|world| usize::try_from(world.get()).ok()),
        front_end: Some(draft.recipe.target.front_end()),
        ..Settings::default()
    };
    let report = check(draft.text.as_bytes(), &settings);
    let is_wrong = |severity| matches!(severity, Severity::Error | Severity::Warning);
    let is_clean = report.verdict == Verdict::Accept
        && !report.diagnostics.iter().any(|found| is_wrong(found.severity));
    match is_clean {
        true => Ok(()),
        false => {
            Err(CreateProblem::Findings { text: draft.text.clone(), report: Box::new(report) })
        }
    }
}
