//! Which engine to judge for: the one the user names, else the one that is installed, else the newest.

use zeropilot_ask::Software;
use zeropilot_config::installed::{self, InstalledEngine};
use zeropilot_config::packages::Packages;
use zeropilot_config::schema::{EngineVersion, UnknownVersion};
use zeropilot_view::talk::VersionSource;

/// Decides.
pub(crate) fn choose(
    given: Option<&str>,
) -> Result<(EngineVersion, VersionSource), UnknownVersion> {
    if let Some(given) = given {
        return Ok((EngineVersion::nearest(given)?, VersionSource::Given(given.to_owned())));
    }
    Ok(match installed::find(|name| std::env::var_os(name)) {
        Some(InstalledEngine { engine, version, place, .. }) => {
            let place = place.to_string_lossy().into_owned();
            (engine, VersionSource::Installed { version, place })
        }
        None => (EngineVersion::NEWEST, VersionSource::Newest),
    })
}

/// The versions to compare advisories with: the engine that the user names, else everything that is installed.
pub(crate) fn packages(given: Option<&str>) -> Packages {
    match given {
        Some(given) => Packages::engine(given),
        None => installed::find(|name| std::env::var_os(name))
            .map(|found| found.packages)
            .unwrap_or_default(),
    }
}

/// Notes which engine is installed, for a question that names none.
pub(crate) fn find(software: &mut Software) {
    if let Some(found) = installed::find(|name| std::env::var_os(name)) {
        software.installed = Some((found.engine, found.place.to_string_lossy().into_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_engine_is_the_nearest_known() {
        assert_eq!(choose(Some("0.14.2")).map(|(engine, _)| engine.name()), Ok("0.14.5"));
        assert!(choose(Some("latest")).is_err());
    }
}
