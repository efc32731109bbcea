//! Releases of libraries that a project asks for: in `requirements.txt`, or in the head of a training script (PEP 723).

use crate::library_version::LibraryVersion;

/// Where a project lists what it needs.
pub(crate) const REQUIREMENTS: &str = "requirements.txt";

/// The release of a library that requirements pin, and the byte at which they do.
pub(crate) fn in_requirements(text: &str, library: &str) -> Option<(LibraryVersion, usize)> {
    lines(text).find_map(|(start, line)| Some((pinned(line, library)?, start)))
}

/// The same in the head of a script.
pub(crate) fn in_script(text: &str, library: &str) -> Option<(LibraryVersion, usize)> {
    lines(text)
        .skip_while(|(_, line)| line.trim() != "# /// script")
        .skip(1)
        .take_while(|(_, line)| line.starts_with('#') && line.trim() != "# ///")
        .find_map(|(start, line)| {
            let entry = line.split_once("dependencies").map_or(line, |(_, list)| list);
            let mut texts = entry.split(['"', '\'']).skip(1).step_by(2);
            Some((texts.find_map(|text| pinned(text, library))?, start))
        })
}

/// Lines with the byte at which each begins.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let begins = start;
        start += line.len();
        (begins, line.trim_end())
    })
}

/// The newest release that a requirement allows, where it names one: `trl==0.24.0`, `trl[peft]>=0.18,<=0.24`.
fn pinned(requirement: &str, library: &str) -> Option<LibraryVersion> {
    let rest = requirement.trim_start().strip_prefix(library)?.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']')?.1,
        None => rest,
    };
    let specifiers = rest.split([';', '#']).next()?;
    specifiers.split(',').find_map(|specifier| {
        let specifier = specifier.trim();
        let version = specifier.strip_prefix("==").or_else(|| specifier.strip_prefix("<="))?;
        version.trim_start_matches('=').parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Option<String> {
        in_requirements(text, "trl").map(|(version, _)| version.to_string())
    }

    #[test]
    fn a_release_that_is_named_is_known() {
        assert_eq!(version("torch\ntrl==0.24.0\n").as_deref(), Some("0.24"));
        assert_eq!(version("trl[peft] >= 0.18, <= 1.9 # old\n").as_deref(), Some("1.9"));
        assert_eq!(version("trl == 0.12.* ; python_version > '3.9'").as_deref(), Some("0.12"));
    }

    #[test]
    fn a_bound_that_names_no_release_says_nothing() {
        for text in
            ["trl", "trl>=0.12", "trl<1.0", "trlx==0.7", "# trl==0.12", "trl @ git+https://x"]
        {
            assert_eq!(version(text), None, "{text}");
        }
    }

    #[test]
    fn a_script_lists_what_it_needs_in_its_head() {
        let script = "# /// script\n# dependencies = [\n#     \"torch\",\n#     \"trl==0.24.0\",\n# ]\n# ///\nimport trl\n";
        let found = in_script(script, "trl").map(|(version, start)| (version.to_string(), start));
        assert_eq!(found, Some(("0.24".to_owned(), script.find("#     \"trl").expect("a line"))));
        let one_line = "# /// script\n# dependencies = [\"torch\", 'trl==1.9']\n# ///\n";
        assert!(in_script(one_line, "trl").is_some());
        assert_eq!(in_script("# dependencies = [\"trl==0.24.0\"]\n", "trl"), None);
        assert_eq!(in_script("# /// script\n# ///\n# \"trl==0.24.0\"\n", "trl"), None);
    }
}
