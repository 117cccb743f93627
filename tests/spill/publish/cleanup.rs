//! What goes when a publication fails or is dropped, and what happens if even that fails.
use super::{ALL, Case, FOLDERS, Shape};
use crate::faults::{EIO, EMFILE, Fault};
use plimsoll::spill::publish::{Publication, SyncPolicy};
use plimsoll::spill::{SpillError, files};
use std::sync::{Arc, Mutex};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The messages of all events of the library.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Told {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Message(String);
        impl tracing::field::Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        if event.metadata().target() == "plimsoll" && *event.metadata().level() == tracing::Level::WARN {
            let mut message = Message(String::new());
            event.record(&mut message);
            self.0.lock().unwrap().push(message.0);
        }
    }
}

fn listening<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let told = Told::default();
    let done = tracing::subscriber::with_default(tracing_subscriber::registry().with(told.clone()), work);
    let told = std::mem::take(&mut *told.0.lock().unwrap());
    (done, told)
}

/// R3: the first error is told, whatever happens while it is cleaned up after; what stays is warned of.
#[test]
fn an_error_of_the_clean_up_neither_hides_nor_is_hidden() {
    for shape in ALL {
        let case = Case::new(shape);
        case.publish().unwrap();
        for number in 0..case.faults.calls().len() {
            let case = Case::new(shape);
            let before = case.tree();
            case.faults.set(Fault::Broken(number, EIO, EMFILE));
            let (result, told) = listening(|| case.publish());
            let Err(error) = result else { continue };
            let call = case.faults.calls()[number].clone();
            // looking for leftovers is no part of the publication: there the second failure is the first of it
            let sweeps = call.what == "list" && Some(&*call.path) == case.place().parent();
            let expected = if sweeps { EMFILE } else { EIO };
            assert_eq!(error.io_error().unwrap().raw_os_error(), Some(expected), "{shape:?} {number}: {error}");
            let left = case.tree() != before;
            assert!(!left || !told.is_empty(), "{shape:?} {number}: what stays is told of");
        }
    }
}

#[test]
fn a_leftover_is_named_with_the_error_that_kept_it() {
    let case = Case::new(Shape::New);
    let publication = case.written(SyncPolicy::Final).unwrap();
    let path = publication.path().to_owned();
    case.faults.set(Fault::Broken(case.faults.calls().len() + 1, EIO, EIO));
    let ((), told) = listening(|| drop(publication));
    assert!(told.len() == 1 && told[0].starts_with(&format!("left behind: {}", path.display())), "{told:?}");
    assert!(told[0].contains("os error 5"), "{told:?}");
}

/// Success never comes from a destructor, and a drop says nothing.
#[test]
fn what_is_dropped_without_a_commit_was_never_there() {
    for shape in FOLDERS {
        let case = Case::new(shape);
        let ((), told) = listening(|| drop(case.written(SyncPolicy::Final).unwrap()));
        assert_eq!(case.tree(), case.before(), "{shape:?}");
        assert_eq!(case.faults.count("sync") + case.faults.count("sync folder") + case.faults.count("rename"), 0);
        assert!(told.is_empty(), "{told:?}");
    }
}

#[test]
fn whoever_is_asked_to_go_on_can_stop_every_step() {
    for shape in FOLDERS {
        let asked = std::cell::Cell::new(0usize);
        let case = Case::new(shape);
        case.written(SyncPolicy::Final)
            .unwrap()
            .commit(|| {
                asked.set(asked.get() + 1);
                Ok::<(), SpillError>(())
            })
            .unwrap();
        assert_eq!(asked.get(), 4 + 2 + 1, "before each sync, and before the step");
        for stop in 0..asked.get() {
            let case = Case::new(shape);
            let left = std::cell::Cell::new(stop);
            let stopped = || SpillError::Folder { path: "x".into(), why: "stopped".into() };
            let result = case.written(SyncPolicy::Final).unwrap().commit::<SpillError>(|| {
                left.set(left.get().checked_sub(1).ok_or_else(stopped)?);
                Ok(())
            });
            assert_eq!(result.unwrap_err().to_string(), "x: stopped");
            assert_eq!(case.tree(), case.before(), "{shape:?} {stop}");
            assert_eq!(case.faults.count("sync") + case.faults.count("sync folder"), stop);
        }
    }
}

#[test]
fn leftovers_of_the_dead_go_and_those_of_the_living_stay() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("index");
    let dead = root.path().join(".index.tmp-1-0");
    std::fs::create_dir_all(dead.join("deep/er")).unwrap();
    std::fs::write(dead.join("deep/er/x"), [0; 1000]).unwrap();
    std::fs::write(dead.join("y"), [0; 24]).unwrap();
    for somebody_elses in [".index.tmp-x", ".index.tmp-1-0.bak", "index.old", ".other.tmp-1-0"] {
        std::fs::create_dir(root.path().join(somebody_elses)).unwrap();
    }
    let living = Publication::begin(files::system(), &place, SyncPolicy::Final).unwrap();
    assert!(!dead.exists());
    std::fs::create_dir(&dead).unwrap();
    std::fs::write(dead.join("y"), [0; 24]).unwrap();
    let mut second = Publication::begin(files::system(), &place, SyncPolicy::Final).unwrap();
    assert!(living.path().exists());
    second.write("manifest", b"2").unwrap();
    let published = second.commit(|| Ok::<(), SpillError>(())).unwrap();
    assert_eq!((published.swept, published.swept_bytes, published.synced_folders), (1, 24, 3));
    let path = living.path().to_owned();
    assert!(path.exists());
    drop(living);
    assert!(!path.exists() && place.join("manifest").exists());
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 5, "what others have named stays");
}
