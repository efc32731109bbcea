//! Writing configs: whole or not at all, and never over somebody else's.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use zeropilot_view::creation::CreationProblem;

/// A config on its way to its file.
pub(crate) struct Pending {
    temporary: NamedTempFile,
    path: PathBuf,
}

/// Writes the text beside its file. Nothing is visible under the file's name yet.
pub(crate) fn prepare(path: &Path, text: &str, force: bool) -> Result<Pending, CreationProblem> {
    if path.is_dir() {
        return Err(CreationProblem::IsDirectory);
    }
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return Err(CreationProblem::IsNoFile);
    }
    // A link that leads nowhere is something there, too.
    if !force && path.symlink_metadata().is_ok() {
        return Err(CreationProblem::Exists);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(CreationProblem::NoDirectory);
    }
    let temporary = write(directory, text).map_err(CreationProblem::System)?;
    Ok(Pending { temporary, path: path.to_owned() })
}

fn write(directory: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".zeropilot-").suffix(".json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any program would create it; the user's mask is still taken off.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

impl Pending {
    /// Gives the text its name in one step.
    pub(crate) fn publish(self, force: bool) -> Result<(), CreationProblem> {
        let published = if force {
            self.temporary.persist(&self.path)
        } else {
            self.temporary.persist_noclobber(&self.path)
        };
        match published {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(CreationProblem::Exists)
            }
            Err(error) => Err(CreationProblem::System(error.error)),
        }
    }
}
