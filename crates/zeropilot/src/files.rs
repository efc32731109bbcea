//! The files to check, found and read one after the other, never held all at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};
use zeropilot_view::talk::InputProblem;

use crate::project::Found;

/// No config comes near this; what is larger is something else.
const LARGEST_MIB: u64 = 64;
const LARGEST: u64 = LARGEST_MIB << 20;

/// Names of launch scripts end like this.
const SCRIPTS: [&str; 5] = ["sh", "bash", "slurm", "sbatch", "job"];

/// Whether a file is a launch script by its name.
pub(crate) fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|found| SCRIPTS.iter().any(|known| found.eq_ignore_ascii_case(known)))
}

/// Something to check.
#[derive(Debug)]
pub(crate) enum Input {
    /// Standard input.
    Stdin,
    /// A file the user named.
    Named(PathBuf),
    /// A file found in a directory.
    Found(PathBuf),
}

impl Input {
    /// Its name in results.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::Named(path) | Self::Found(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// Its path, if it is a file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::Named(path) | Self::Found(path) => Some(path),
        }
    }

    /// Whether the user named this very input.
    pub(crate) fn is_named(&self) -> bool {
        !matches!(self, Self::Found(_))
    }

    /// Its content.
    pub(crate) fn read(&self) -> Result<Vec<u8>, InputProblem> {
        match self {
            Self::Stdin => read_all(io::stdin().lock(), 0),
            Self::Named(path) => {
                refuse_special(path)?;
                read_file(path)
            }
            Self::Found(path) => read_file(path),
        }
    }
}

/// An input, or why there is none.
pub(crate) type Collected = Result<Input, (String, InputProblem)>;

/// All inputs behind the paths the user gave, in their order, directories in the order of names. What a project
/// passes over is left out of directories.
pub(crate) fn collect<'a>(
    paths: &'a [PathBuf],
    scripts: bool,
    found: &'a Found,
) -> impl Iterator<Item = Collected> + 'a {
    paths.iter().flat_map(move |path| -> Box<dyn Iterator<Item = Collected> + 'a> {
        if path.as_os_str() == "-" {
            return Box::new(std::iter::once(Ok(Input::Stdin)));
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Box::new(walk(path, scripts, found)),
            Ok(_) => Box::new(std::iter::once(Ok(Input::Named(path.clone())))),
            Err(error) => Box::new(std::iter::once(Err(problem(path, error)))),
        }
    })
}

fn walk<'a>(
    directory: &'a Path,
    scripts: bool,
    found: &'a Found,
) -> impl Iterator<Item = Collected> + 'a {
    let entries = WalkBuilder::new(directory)
        .hidden(false)
        .require_git(false)
        .sort_by_file_name(|left, right| left.cmp(right))
        .filter_entry(|entry| entry.depth() == 0 || !is_hidden_directory(entry))
        .build();
    let mut any = false;
    let inputs = entries.filter_map(move |entry| match entry {
        Ok(entry) if found.excludes(entry.path()) => None,
        Ok(entry) => as_input(&entry, scripts),
        Err(error) => {
            let path = path_of(&error).map_or_else(PathBuf::new, Path::to_owned);
            let error = error.into_io_error().unwrap_or_else(|| io::ErrorKind::Other.into());
            Some(Err(problem(&path, error)))
        }
    });
    let mut inputs = inputs.fuse();
    std::iter::from_fn(move || match inputs.next() {
        Some(input) => {
            any = true;
            Some(input)
        }
        None if any => None,
        None => {
            any = true;
            Some(Err((directory.to_string_lossy().into_owned(), InputProblem::NoConfigs)))
        }
    })
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        _ => None,
    }
}

fn is_hidden_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
        && entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// A config by its name. Links are followed to files, not to directories.
fn as_input(entry: &DirEntry, scripts: bool) -> Option<Collected> {
    // What is found in `.` is named as people name it.
    let path = entry.path().strip_prefix(".").unwrap_or(entry.path());
    let extension = path.extension()?.to_str()?;
    let wanted: &[&str] = if scripts { &SCRIPTS } else { &["json", "hjson"] };
    if !wanted.iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return None;
    }
    let file_type = entry.file_type()?;
    if file_type.is_file() {
        return Some(Ok(Input::Found(path.to_owned())));
    }
    let is_directory = file_type.is_dir()
        || file_type.is_symlink() && fs::metadata(path).is_ok_and(|metadata| metadata.is_dir());
    (!is_directory).then(|| Ok(Input::Named(path.to_owned())))
}

fn problem(path: &Path, error: io::Error) -> (String, InputProblem) {
    (path.to_string_lossy().into_owned(), from_io(error))
}

fn from_io(error: io::Error) -> InputProblem {
    match error.kind() {
        io::ErrorKind::NotFound => InputProblem::NotFound,
        _ => InputProblem::Unreadable(error),
    }
}

/// Opening a pipe waits for somebody to write into it, and reading a device may never end.
fn refuse_special(path: &Path) -> Result<(), InputProblem> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(InputProblem::NotAFile),
        Err(error) => Err(from_io(error)),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, InputProblem> {
    let file = File::open(path).map_err(from_io)?;
    let size = file.metadata().map_err(from_io)?.len();
    if size > LARGEST {
        return Err(InputProblem::TooLarge { limit_mib: LARGEST_MIB });
    }
    read_all(file, size)
}

fn read_all(source: impl Read, size: u64) -> Result<Vec<u8>, InputProblem> {
    let mut bytes = Vec::with_capacity(usize::try_from(size + 1).unwrap_or(0));
    source.take(LARGEST + 1).read_to_end(&mut bytes).map_err(from_io)?;
    if bytes.len() as u64 > LARGEST {
        return Err(InputProblem::TooLarge { limit_mib: LARGEST_MIB });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_walked_in_order_without_hidden_ones() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        for path in ["b.json", "a.HJSON", "c.yaml", "sub/d.json", ".git/e.json", "z/.f.json"] {
            fs::create_dir_all(root.join(path).parent().expect("a parent")).expect("directories");
            fs::write(root.join(path), "{}").expect("a file");
        }
        let paths = [root.to_owned()];
        let names: Vec<String> = collect(&paths, false, &Found::default())
            .map(|input| input.expect("an input").name())
            .map(|name| name[root.to_string_lossy().len() + 1..].to_owned())
            .collect();
        assert_eq!(names, ["a.HJSON", "b.json", "sub/d.json", "z/.f.json"]);
    }

    #[test]
    fn what_git_ignores_is_not_checked_unless_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        fs::create_dir(root.join("venv")).expect("a directory");
        fs::write(root.join(".gitignore"), "venv/\nlocal.json\n").expect("a file");
        for path in ["a.json", "local.json", "venv/b.json"] {
            fs::write(root.join(path), "{}").expect("a file");
        }
        let all = Found::default();
        let names = |path: PathBuf| -> Vec<String> {
            let paths = [path];
            let inputs = collect(&paths, false, &all).map(|input| input.expect("an input").name());
            inputs.map(|name| name[root.to_string_lossy().len() + 1..].to_owned()).collect()
        };
        assert_eq!(names(root.to_owned()), ["a.json"]);
        assert_eq!(names(root.join("local.json")), ["local.json"]);
        assert_eq!(names(root.join("venv")), ["venv/b.json"]);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let paths = [PathBuf::from("no/such/file.json")];
        let found: Vec<_> = collect(&paths, false, &Found::default()).collect();
        assert!(matches!(found.as_slice(), [Err((_, InputProblem::NotFound))]));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let paths = [directory.path().to_owned()];
        let found: Vec<_> = collect(&paths, false, &Found::default()).collect();
        assert!(matches!(found.as_slice(), [Err((_, InputProblem::NoConfigs))]));
    }
}
