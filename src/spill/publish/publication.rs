//! A folder that becomes visible as a whole.

use super::super::error::{SpillError, SpillResult};
use super::super::files::{Files, OpenFile, uninterrupted, write_all_at};
use super::super::folder::Swept;
use super::aside::recover;
use super::names::Place;
use super::outcome::{Published, SyncPolicy};
use super::parents::Parents;
use super::swap::Swap;
use super::sync::Syncs;
use super::temporary::{Kind, Temporary, sweep};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A folder under a temporary name, which [`commit`](Publication::commit) puts into its place. Dropped without that, it is
/// removed with all that is in it, and so are the folders that were created above it.
///
/// One publication at a time to a place: a second one that comes to its commit while the first is in its own is refused.
/// A sync that failed cannot be asked for again, so no file is ever synced twice; whatever it was made from has to stay until
/// `commit` has returned `Ok`.
///
/// Its list of files is not charged to anybody: a name and two words a file. Every call may block.
///
/// ```
/// use plimsoll::spill::publish::{Publication, SyncPolicy};
/// use plimsoll::spill::{SpillError, files};
///
/// # let parent = std::env::temp_dir().join(format!("plimsoll-doc-{}", std::process::id()));
/// # let place = parent.join("index");
/// let mut publication = Publication::begin(files::system(), &place, SyncPolicy::Final)?;
/// publication.write("words", b"barque brig clipper")?;
/// publication.write("manifest", b"words 19")?;
/// let published = publication.commit(|| Ok::<(), SpillError>(()))?;
/// assert_eq!(published.synced_files, 2);
/// assert_eq!(std::fs::read(place.join("manifest")).unwrap(), b"words 19");
/// # std::fs::remove_dir_all(&parent).unwrap();
/// # Ok::<(), SpillError>(())
/// ```
#[derive(Debug)]
pub struct Publication {
    // dropped in this order: handles, then what they are on, then what that is in
    members: Vec<Member>,
    folders: Vec<PathBuf>,
    folder: Temporary,
    parents: Parents,
    place: Place,
    replace: bool,
    stage: Stage,
    syncs: Syncs,
    files: Arc<dyn Files>,
}

#[derive(Debug)]
struct Member {
    /// From the folder on.
    name: PathBuf,
    /// None: opened again for its sync.
    file: Option<Box<dyn OpenFile>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Files come.
    Open,
    /// All are there and synced; their handles are closed.
    Synced,
    /// A sync has failed, or was not wanted to go on: nothing is synced again.
    Over,
}

fn refused(what: &'static str, path: &Path, why: &'static str) -> SpillError {
    SpillError::io(what, path)(io::Error::new(io::ErrorKind::InvalidInput, why))
}

impl Publication {
    /// Begins a publication to `place`, in a new folder `.NAME.tmp-PROCESS-NUMBER` beside it. Parents that are missing are
    /// created. What a killed replacement has left aside is put back, and temporary folders of processes that are gone are
    /// removed.
    ///
    /// # Errors
    /// [`SpillError::Io`]; nothing has changed.
    pub fn begin(files: Arc<dyn Files>, place: &Path, policy: SyncPolicy) -> SpillResult<Publication> {
        Publication::new(files, place, None, policy)
    }

    /// As [`begin`](Publication::begin), in a new folder of this name beside the place. If the process is killed it stays:
    /// only names that this crate has given are swept.
    ///
    /// # Errors
    /// [`SpillError::Io`], also if there is something of that name; nothing has changed.
    pub fn begin_as(
        files: Arc<dyn Files>,
        place: &Path,
        temporary_name: &str,
        policy: SyncPolicy,
    ) -> SpillResult<Publication> {
        Publication::new(files, place, Some(temporary_name), policy)
    }

    fn new(
        files: Arc<dyn Files>,
        place: &Path,
        temporary: Option<&str>,
        policy: SyncPolicy,
    ) -> SpillResult<Publication> {
        let place = Place::of(place).map_err(SpillError::io("publishing to", place))?;
        let temporary = match temporary {
            None => None,
            Some(name) if one_name(Path::new(name)) && place.path.file_name() != Some(name.as_ref()) => {
                Some(place.parent.join(name))
            }
            Some(name) => return Err(refused("creating", &place.parent.join(name), "not a name beside the place")),
        };
        let mut syncs = Syncs::new(policy);
        let parents = Parents::create(files.clone(), &place.parent)?;
        recover(&*files, &place.path)?;
        sweep(&*files, &place, Kind::Folder, &mut syncs);
        let folder = Temporary::folder(files.clone(), &place, temporary)?;
        Ok(Publication {
            members: Vec::new(),
            folders: Vec::new(),
            folder,
            parents,
            place,
            replace: false,
            stage: Stage::Open,
            syncs,
            files,
        })
    }

    /// Whether a folder that is at the place then, and is not empty, is replaced. Without this it is an error.
    #[must_use]
    pub fn replacing(mut self, replace: bool) -> Publication {
        self.replace = replace;
        self
    }

    /// The folder, for as long as it is temporary.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What was removed of processes that are gone when this began.
    pub fn swept(&self) -> Swept {
        let Published { swept, swept_bytes, .. } = self.syncs.published;
        Swept { folders: swept, bytes: swept_bytes, failed: 0 }
    }

    fn path_of(&self, name: &Path) -> SpillResult<PathBuf> {
        let path = self.path().join(name);
        if self.stage != Stage::Open {
            return Err(refused("adding", &path, "the publication is complete"));
        }
        match name.parent() {
            Some(parent) if name.components().all(|part| matches!(part, Component::Normal(_))) => {
                if parent.as_os_str().is_empty() || self.folders.iter().any(|folder| folder == parent) {
                    return Ok(path);
                }
                Err(refused("creating", &path, "its folder is not in the publication"))
            }
            _ => Err(refused("creating", &path, "not a name within the publication")),
        }
    }

    /// Creates a folder in it. `name` may lead through folders that were created so before.
    ///
    /// # Errors
    /// [`SpillError::Io`]; nothing has changed.
    pub fn create_folder(&mut self, name: impl AsRef<Path>) -> SpillResult<()> {
        let path = self.path_of(name.as_ref())?;
        uninterrupted(|| self.files.create_folder(&path)).map_err(SpillError::io("creating", &path))?;
        self.folders.push(name.as_ref().to_owned());
        Ok(())
    }

    /// Creates a file in it. It belongs to the publication when it is [added](Publication::add), after the last write.
    ///
    /// # Errors
    /// [`SpillError::Io`]; nothing has changed.
    pub fn create(&self, name: impl AsRef<Path>) -> SpillResult<Box<dyn OpenFile>> {
        let path = self.path_of(name.as_ref())?;
        uninterrupted(|| self.files.create_new(&path)).map_err(SpillError::io("creating", &path))
    }

    /// Adds a file that is in the folder and finished: with the handle that wrote it, or without, if there are too many
    /// open; then it is opened again for its sync.
    ///
    /// # Errors
    /// [`SpillError::Io`] for what is no name within the publication.
    pub fn add(&mut self, name: impl AsRef<Path>, file: Option<Box<dyn OpenFile>>) -> SpillResult<()> {
        self.path_of(name.as_ref())?;
        self.members.push(Member { name: name.as_ref().to_owned(), file });
        Ok(())
    }

    /// Writes a file of these bytes, and adds it.
    ///
    /// # Errors
    /// [`SpillError::Io`]. The file may be there in part; the publication cannot be committed then.
    pub fn write(&mut self, name: impl AsRef<Path>, bytes: &[u8]) -> SpillResult<()> {
        let file = self.create(&name)?;
        let path = self.path().join(name.as_ref());
        write_all_at(&*file, bytes, 0).map_err(SpillError::io_of("writing", &path, bytes.len() as u64))?;
        self.add(name, Some(file))
    }

    /// Syncs what is in it, so that only the step itself is left. Nothing can be added any more, and all handles are closed;
    /// what was written may be read back before it is published. `go_on` is asked before each sync. With
    /// [`SyncPolicy::None`] it only looks whether everything was added.
    ///
    /// # Errors
    /// What `go_on` says; [`SpillError::Io`] for the first call that failed, and for a file in the folder that was not added,
    /// or was twice. There is no second try: every later call says so.
    pub fn sync<E: From<SpillError>>(&mut self, mut go_on: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Open => {
                self.check()?;
                self.sync_all(&mut go_on)?;
            }
            Stage::Synced => {}
            Stage::Over => return Err(refused("syncing", self.path(), "an earlier try has failed").into()),
        }
        self.stage = Stage::Synced;
        Ok(())
    }

    /// Makes it what is at the place; what is not [synced](Publication::sync) yet is before that. `go_on` is asked before
    /// each sync, and last before the step that cannot be stopped.
    ///
    /// What fails after that step is undone: the parent's sync. What was replaced is removed at the end; what cannot be is
    /// warned of and [counted](Published::left_behind), as the new content is in its place.
    ///
    /// # Errors
    /// What `go_on` says; [`SpillError::Io`] for the first call that failed, for a file in the folder that was not added, or
    /// was twice, and for a place that is not empty or not a folder. The place is as it was, and nothing temporary stays; what
    /// of that cannot be done is warned of.
    pub fn commit<E: From<SpillError>>(mut self, mut go_on: impl FnMut() -> Result<(), E>) -> Result<Published, E> {
        self.sync(&mut go_on)?;
        go_on()?;
        let (files, new, place) = (&*self.files, self.folder.path(), &self.place);
        let swap = Swap::folder(files, new, place, self.replace)?;
        if let Err(first) = sync_parents(files, place, &self.parents, &mut self.syncs) {
            if !swap.undo(files, new, &place.path) {
                self.folder.keep();
            }
            return Err(first.into());
        }
        self.parents.keep();
        let mut published = std::mem::take(&mut self.syncs.published);
        published.replaced = swap.replaced();
        published.left_behind.extend(swap.remove_old(files, new));
        self.folder.keep();
        Ok(published)
    }

    /// What is in the folder is what was added, each once: nothing becomes visible that was not synced.
    fn check(&self) -> SpillResult<()> {
        let mut names: Vec<&Path> = self.members.iter().map(|member| &*member.name).collect();
        names.extend(self.folders.iter().map(|folder| &**folder));
        names.sort_unstable();
        let root = self.path();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refused("publishing", &root.join(twice[0]), "it was added twice"));
        }
        let mut found = vec![false; names.len()];
        for folder in std::iter::once(root.to_owned()).chain(self.folders.iter().map(|folder| root.join(folder))) {
            for path in uninterrupted(|| self.files.list(&folder)).map_err(SpillError::io("reading", &folder))? {
                let name = path.strip_prefix(root).unwrap_or(&path);
                match names.binary_search(&name) {
                    Ok(number) => found[number] = true,
                    Err(_) => return Err(refused("publishing", &path, "it was not added")),
                }
            }
        }
        match found.iter().position(|found| !found) {
            Some(absent) => Err(refused("publishing", &root.join(names[absent]), "it was added and is not there")),
            None => Ok(()),
        }
    }

    /// Files, then folders, the innermost first.
    fn sync_all<E: From<SpillError>>(&mut self, go_on: &mut impl FnMut() -> Result<(), E>) -> Result<(), E> {
        let members = std::mem::take(&mut self.members);
        if !self.syncs.wanted() {
            return Ok(());
        }
        for Member { name, file } in members {
            go_on()?;
            let path = self.folder.path().join(name);
            let file = match file {
                Some(file) => file,
                None => {
                    uninterrupted(|| self.files.open_for_writing(&path)).map_err(SpillError::io("opening", &path))?
                }
            };
            self.syncs.file(&*file, &path)?;
        }
        for name in self.folders.iter().rev() {
            go_on()?;
            self.syncs.folder(&*self.files, &self.folder.path().join(name))?;
        }
        go_on()?;
        self.syncs.folder(&*self.files, self.folder.path())?;
        Ok(())
    }
}

fn sync_parents(files: &dyn Files, place: &Place, parents: &Parents, syncs: &mut Syncs) -> SpillResult<()> {
    syncs.folder(files, &place.parent)?;
    parents.of_missing().try_for_each(|folder| syncs.folder(files, folder))
}

/// Whether it is one name, and leads nowhere else.
fn one_name(name: &Path) -> bool {
    let mut parts = name.components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}
