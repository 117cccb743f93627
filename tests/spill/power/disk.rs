//! A disk in memory: what names files now, and a record of every change and sync.
use plimsoll::spill::files::{Entry, Files, Identity, OpenFile, Version};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of a file or folder; 0 is the root.
pub(super) type Node = usize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    File(Vec<u8>),
    Folder(BTreeMap<String, Node>),
}

/// One change or sync.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// A file or folder that nothing names yet.
    New(Content),
    /// Names in one folder that change in one step.
    Names(Node, Vec<(String, Option<Node>)>),
    Write(Node, usize, Vec<u8>),
    Cut(Node, usize),
    SyncFile(Node),
    SyncFolder(Node),
    Acknowledged,
}

/// Paths below a place, with the bytes of files.
pub(super) type Tree = BTreeMap<String, Option<Vec<u8>>>;

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) nodes: Vec<Content>,
    /// what was durable at the beginning
    pub(super) durable: Vec<Content>,
    pub(super) log: Vec<Op>,
    pub(super) exchange: bool,
    pub(super) locked: Vec<Node>,
}

/// See the module. Clones are the same disk.
#[derive(Debug, Clone)]
pub(super) struct Disk(pub(super) Arc<Mutex<State>>);

impl State {
    pub(super) fn apply(&mut self, op: &Op) {
        match op {
            Op::New(content) => self.nodes.push(content.clone()),
            Op::Names(folder, changes) => {
                let Content::Folder(names) = &mut self.nodes[*folder] else { panic!("names in a file") };
                for (name, node) in changes {
                    match node {
                        Some(node) => names.insert(name.clone(), *node),
                        None => names.remove(name),
                    };
                }
            }
            Op::Write(file, offset, bytes) => {
                let content = self.file(*file);
                content.resize(content.len().max(offset + bytes.len()), 0);
                content[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            Op::Cut(file, bytes) => self.file(*file).resize(*bytes, 0),
            Op::SyncFile(_) | Op::SyncFolder(_) | Op::Acknowledged => {}
        }
    }

    fn file(&mut self, file: Node) -> &mut Vec<u8> {
        let Content::File(bytes) = &mut self.nodes[file] else { panic!("bytes in a folder") };
        bytes
    }

    fn names(&self, folder: Node) -> io::Result<&BTreeMap<String, Node>> {
        match &self.nodes[folder] {
            Content::Folder(names) => Ok(names),
            Content::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn find(&self, path: &Path) -> io::Result<Node> {
        let mut parts = path.iter();
        assert_eq!(parts.next().unwrap(), "/", "paths begin at the root");
        parts.try_fold(0, |folder, name| {
            self.names(folder)?.get(name.to_str().unwrap()).copied().ok_or_else(|| ErrorKind::NotFound.into())
        })
    }

    /// The folder and the name in it that a path ends in.
    fn last(&self, path: &Path) -> io::Result<(Node, String)> {
        Ok((self.find(path.parent().unwrap())?, path.file_name().unwrap().to_str().unwrap().to_owned()))
    }

    fn record(&mut self, op: Op) {
        self.apply(&op);
        self.log.push(op);
    }

    fn create(&mut self, path: &Path, content: Content) -> io::Result<Node> {
        let (folder, name) = self.last(path)?;
        if self.names(folder)?.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let node = self.nodes.len();
        self.record(Op::New(content));
        self.record(Op::Names(folder, vec![(name, Some(node))]));
        Ok(node)
    }

    fn walk(&self, node: Node, at: &str, tree: &mut Tree) {
        match &self.nodes[node] {
            Content::File(bytes) => drop(tree.insert(at.to_owned(), Some(bytes.clone()))),
            Content::Folder(names) => {
                if !at.is_empty() {
                    tree.insert(at.to_owned(), None);
                }
                names.iter().for_each(|(name, node)| self.walk(*node, &format!("{at}/{name}"), tree));
            }
        }
    }
}

impl Disk {
    pub(super) fn new(exchange: bool) -> Disk {
        let nodes = vec![Content::Folder(BTreeMap::new())];
        Disk::of(State { nodes, exchange, ..State::default() })
    }

    pub(super) fn of(state: State) -> Disk {
        Disk(Arc::new(Mutex::new(state)))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// From here on things are recorded.
    pub(super) fn all_is_durable(&self) {
        let mut state = self.state();
        state.log.clear();
        state.durable = state.nodes.clone();
    }

    /// The disk as the next process finds it if this one is killed behind so many changes; nothing is lost yet, and nothing
    /// more is durable.
    pub(super) fn killed_after(&self, changes: usize) -> Disk {
        let state = self.state();
        let log: Vec<Op> = state.log[..changes].to_vec();
        let mut killed = State {
            nodes: state.durable.clone(),
            durable: state.durable.clone(),
            exchange: state.exchange,
            ..State::default()
        };
        log.iter().for_each(|op| killed.apply(op));
        killed.log = log;
        Disk::of(killed)
    }

    /// Numbers of changes behind which names in a folder have changed.
    pub(super) fn changes_in(&self, folder: &str) -> Vec<usize> {
        let state = self.state();
        let folder = state.find(Path::new(folder)).unwrap();
        let in_it = |number: &usize| matches!(state.log[number - 1], Op::Names(of, _) if of == folder);
        (1..=state.log.len()).filter(in_it).collect()
    }

    /// Whoever asked has been told that all is well.
    pub(super) fn acknowledge(&self) {
        self.state().record(Op::Acknowledged);
    }

    /// What is at a path, if anything is.
    pub(super) fn tree(&self, path: impl AsRef<Path>) -> Option<Tree> {
        let state = self.state();
        let node = state.find(path.as_ref()).ok()?;
        let mut tree = Tree::new();
        state.walk(node, "", &mut tree);
        Some(tree)
    }

    fn handle(&self, node: Node) -> Box<dyn OpenFile> {
        Box::new(Handle { disk: self.clone(), node, locked: Mutex::new(false) })
    }
}

impl Files for Disk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let node = self.state().create(path, Content::File(Vec::new()))?;
        Ok(self.handle(node))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let node = self.state().find(path)?;
        Ok(self.handle(node))
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.open(path)
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.state().create(path, Content::Folder(BTreeMap::new())).map(drop)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        let names = state.names(state.find(folder)?)?;
        Ok(names.keys().map(|name| folder.join(name)).collect())
    }
    fn look(&self, path: &Path) -> io::Result<Entry> {
        let state = self.state();
        let node = state.find(path)?;
        let identity = Some(Identity { device: 0, number: node as u64 });
        Ok(match &state.nodes[node] {
            Content::File(bytes) => Entry { is_folder: false, is_file: true, bytes: bytes.len() as u64, identity },
            Content::Folder(_) => Entry { is_folder: true, is_file: false, bytes: 0, identity },
        })
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(path)?;
        let (folder, name) = state.last(path)?;
        if state.names(node).is_ok() {
            return Err(ErrorKind::IsADirectory.into());
        }
        state.record(Op::Names(folder, vec![(name, None)]));
        Ok(())
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(path)?;
        let (folder, name) = state.last(path)?;
        if !state.names(node)?.is_empty() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        state.record(Op::Names(folder, vec![(name, None)]));
        Ok(())
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(from)?;
        let ((folder, old_name), (to_folder, new_name)) = (state.last(from)?, state.last(to)?);
        assert_eq!(folder, to_folder, "nothing is moved to another folder here");
        if let Ok(there) = state.find(to)
            && let Ok(names) = state.names(there)
            && !names.is_empty()
        {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        state.record(Op::Names(folder, vec![(old_name, None), (new_name, Some(node))]));
        Ok(())
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.exchange {
            return Err(ErrorKind::Unsupported.into());
        }
        let (one_node, other_node) = (state.find(one)?, state.find(other)?);
        let ((folder, one), (other_folder, other)) = (state.last(one)?, state.last(other)?);
        assert_eq!(folder, other_folder, "nothing is moved to another folder here");
        state.record(Op::Names(folder, vec![(one, Some(other_node)), (other, Some(one_node))]));
        Ok(())
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(folder)?;
        state.record(Op::SyncFolder(node));
        Ok(())
    }
    fn in_memory(&self, _: &Path) -> io::Result<bool> {
        Ok(false)
    }
}

#[derive(Debug)]
struct Handle {
    disk: Disk,
    node: Node,
    locked: Mutex<bool>,
}

impl OpenFile for Handle {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let content = state.file(self.node);
        let rest = &content[content.len().min(offset as usize)..];
        let read = rest.len().min(bytes.len());
        bytes[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.state().record(Op::Write(self.node, offset as usize, bytes.to_vec()));
        Ok(bytes.len())
    }
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.disk.state().file(self.node).len() as u64)
    }
    fn version(&self) -> io::Result<Version> {
        let bytes = match &self.disk.state().nodes[self.node] {
            Content::File(bytes) => bytes.len() as u64,
            Content::Folder(_) => 0,
        };
        let identity = Some(Identity { device: 0, number: self.node as u64 });
        Ok(Version { identity, bytes, modified: None })
    }
    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.disk.state().record(Op::Cut(self.node, bytes as usize));
        Ok(())
    }
    fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
    fn sync(&self) -> io::Result<()> {
        self.disk.state().record(Op::SyncFile(self.node));
        Ok(())
    }
    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        let mut locked = self.locked.lock().unwrap();
        if !*locked && !state.locked.contains(&self.node) {
            state.locked.push(self.node);
            *locked = true;
        }
        Ok(*locked)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if *self.locked.lock().unwrap() {
            self.disk.state().locked.retain(|node| *node != self.node);
        }
    }
}
