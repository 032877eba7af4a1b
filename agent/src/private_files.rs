//! Files that only their owner can read and write, regardless of the umask.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file. Returns an error if the path exists, even if it is a link to a missing file.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(any(feature = "runtime", feature = "testing"))]
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a regular file for reading. Returns an error for a link, even if it points to a regular file.
#[cfg(feature = "runtime")]
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let not_a_file = || io::Error::new(io::ErrorKind::InvalidInput, "the path is not a file");
    let found = std::fs::symlink_metadata(path)?;
    if !found.is_file() {
        return Err(not_a_file());
    }
    let file = File::open(path)?;
    // A link may have replaced the file after the first check, so the opened file is compared with the checked file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let opened = file.metadata()?;
        if (opened.dev(), opened.ino()) != (found.dev(), found.ino()) {
            return Err(not_a_file());
        }
    }
    Ok(file)
}

#[cfg(all(test, unix, feature = "runtime"))]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn files_are_private_and_links_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("agent-private-{}", std::process::id()));
        let inner = folder.join("a/b");
        create_folder(&inner).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&inner)), (0o700, 0o700));
        let (file, link, dangling) = (inner.join("file"), inner.join("link"), inner.join("dangling"));
        create(&file).unwrap().write_all(b"text").unwrap();
        assert_eq!(mode(&file), 0o600);
        symlink(&file, &link).unwrap();
        symlink(inner.join("nothing"), &dangling).unwrap();
        for taken in [&file, &link, &dangling] {
            assert_eq!(create(taken).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        let mut text = String::new();
        open(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for wrong in [&link, &dangling, &inner, &inner.join("nothing")] {
            assert!(open(wrong).is_err(), "{}", wrong.display());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
