//! Every call of a publication is made to fail in every way.
use super::{ALL, Case, Shape};
use crate::faults::{EIO, EMFILE, ENOSPC, Fault};
use std::io::ErrorKind;

/// "Not supported".
const EOPNOTSUPP: i32 = 95;

/// How many calls there are, and the number of the last folder sync: what comes later is the removal of what was replaced.
fn calls(shape: Shape) -> (usize, usize) {
    let case = Case::new(shape);
    case.publish().unwrap();
    let calls = case.faults.calls();
    assert_eq!(case.tree(), case.after());
    (calls.len(), calls.iter().rposition(|call| call.what == "sync folder").unwrap())
}

/// B46, B51: the first error is told, the old state is there byte for byte, nothing temporary is left, and a retry succeeds.
#[test]
fn a_call_that_fails_ends_the_publication_and_leaves_what_was_there() {
    let mut failed = 0;
    for shape in ALL {
        let (total, last_sync) = calls(shape);
        for error in [EIO, ENOSPC, EMFILE] {
            for number in 0..total {
                let case = Case::new(shape);
                case.faults.set(Fault::At(number, error));
                let result = case.publish();
                let call = case.faults.calls()[number].clone();
                let told = format!("{shape:?}, {error} at {number}: {call:?}");
                // leftovers are looked for before anything else; what was replaced goes after everything else
                let sweeps = call.what == "list" && Some(&*call.path) == case.place().parent();
                if number > last_sync || sweeps {
                    let published = result.unwrap_or_else(|error| panic!("{told}: {error}"));
                    let tree = case.tree();
                    assert!(case.after().iter().all(|(path, content)| tree.get(path) == Some(content)), "{told}");
                    assert_eq!(published.left_behind.is_empty(), tree == case.after(), "{told}");
                } else {
                    let first = result.expect_err(&told);
                    assert_eq!(first.io_error().unwrap().raw_os_error(), Some(error), "{told}");
                    let over = shape == Shape::FileOver && number == last_sync;
                    assert_eq!(case.tree(), if over { case.after() } else { case.before() }, "{told}");
                    failed += 1;
                }
                case.faults.set(Fault::None);
                case.publish().unwrap_or_else(|error| panic!("{told}: {error}"));
                assert_eq!(case.tree(), case.after(), "{told}");
            }
        }
    }
    assert!(failed > 300, "{failed}");
}

/// The calls with names of the case alone: temporary numbers differ.
fn shown(case: &Case) -> Vec<(&'static str, String)> {
    let temporary = |part: &str| if part.contains(".tmp-") { "TMP".to_owned() } else { part.to_owned() };
    let path = |path: &std::path::Path| {
        let parts = path.strip_prefix(case.root()).unwrap().iter().map(|part| temporary(part.to_str().unwrap()));
        parts.collect::<Vec<_>>().join("/")
    };
    case.faults.calls().iter().map(|call| (call.what, path(&call.path))).collect()
}

#[test]
fn interrupted_calls_are_repeated_and_change_nothing() {
    for shape in ALL {
        let (undisturbed, case) = (Case::new(shape), Case::new(shape));
        undisturbed.publish().unwrap();
        case.faults.set(Fault::Interrupted);
        let published = case.publish().unwrap();
        assert_eq!(case.tree(), case.after());
        assert!(published.synced_files > 0 && published.synced_folders > 0);
        assert_eq!(shown(&case), shown(&undisturbed), "{shape:?}");
    }
}

#[test]
fn short_writes_go_on_where_they_ended() {
    for shape in ALL {
        let case = Case::new(shape);
        case.faults.set(Fault::Short(3));
        case.publish().unwrap();
        assert_eq!(case.tree(), case.after());
        assert!(case.faults.count("write") > 8, "{shape:?}");
    }
}

/// R3: a folder that cannot be synced is counted; nothing else may be unsupported, but for locks and exchanges, which are
/// done without.
#[test]
fn of_syncs_only_those_of_folders_may_be_unsupported() {
    for shape in ALL {
        for number in 0..calls(shape).0 {
            let case = Case::new(shape);
            case.faults.set(Fault::At(number, EOPNOTSUPP));
            let result = case.publish();
            let call = case.faults.calls()[number].what;
            match call {
                "sync folder" => {
                    let published = result.unwrap();
                    assert_eq!(published.unsupported_folder_syncs, 1);
                    assert_eq!(case.tree(), case.after());
                }
                "lock" | "exchange" => {
                    assert_eq!(result.unwrap().unsupported_folder_syncs, 0);
                    assert_eq!(case.tree(), case.after(), "{shape:?} {call} {number}");
                }
                "sync" => {
                    let error = result.unwrap_err();
                    assert_eq!(error.io_error().unwrap().kind(), ErrorKind::Unsupported, "{error}");
                    assert_eq!(case.tree(), case.before());
                }
                _ => {}
            }
        }
    }
}
