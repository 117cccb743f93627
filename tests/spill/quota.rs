//! Bytes on disk, counted.
use plimsoll::spill::files::system;
use plimsoll::spill::{DiskQuota, SpillError, SpillFolder};
use plimsoll::{KIB, MIB};

fn folder(parent: &tempfile::TempDir, quota: &DiskQuota) -> SpillFolder {
    SpillFolder::create(system(), parent.path(), "runs", quota.clone()).unwrap()
}

#[test]
fn a_quota_starts_with_nothing_used_and_knows_its_limit() {
    assert_eq!((DiskQuota::new(7).used_bytes(), DiskQuota::new(7).limit_bytes()), (0, Some(7)));
    assert_eq!((DiskQuota::unlimited().peak_bytes(), DiskQuota::unlimited().limit_bytes()), (0, None));
}

#[test]
fn folders_with_one_quota_share_it_to_the_byte() {
    let parent = tempfile::tempdir().unwrap();
    let quota = DiskQuota::new(100);
    let (one, other) = (folder(&parent, &quota), folder(&parent, &quota));
    one.take(60).unwrap();
    other.take(40).unwrap();
    assert_eq!(quota.used_bytes(), 100);
    for asked in [1, u64::MAX] {
        let error = other.take(asked).unwrap_err();
        assert!(
            matches!(error, SpillError::Quota { asked_bytes, used_bytes: 100, limit_bytes: 100 } if asked_bytes == asked),
            "{error:?}"
        );
        assert_eq!((quota.used_bytes(), quota.peak_bytes()), (100, 100), "a refusal changes nothing");
    }
    one.give_back(60);
    other.take(60).unwrap();
    other.give_back(100);
    assert_eq!((quota.used_bytes(), quota.peak_bytes()), (0, 100));
}

#[test]
fn a_quota_without_a_limit_counts_to_the_last_byte_and_does_not_wrap() {
    let parent = tempfile::tempdir().unwrap();
    let quota = DiskQuota::unlimited();
    let folder = folder(&parent, &quota);
    folder.take(u64::MAX - 1).unwrap();
    assert!(matches!(folder.take(2), Err(SpillError::Quota { .. })));
    assert_eq!(quota.used_bytes(), u64::MAX - 1);
    folder.give_back(u64::MAX - 1);
    assert_eq!(quota.used_bytes(), 0);
}

/// B46: the counter is whole whoever is refused, and when.
#[test]
fn threads_that_are_refused_and_not_never_pass_the_quota_and_leave_it_at_0() {
    let parent = tempfile::tempdir().unwrap();
    let quota = DiskQuota::new(1_000);
    let folder = folder(&parent, &quota);
    std::thread::scope(|scope| {
        for seed in 1..=8u64 {
            let (folder, quota) = (folder.clone(), &quota);
            scope.spawn(move || {
                let (mut random, mut refused) = (crate::common::Random(seed), 0);
                for _ in 0..20_000 {
                    let bytes = random.below(400) as u64;
                    match folder.take(bytes) {
                        Ok(()) => {
                            assert!(quota.used_bytes() <= 1_000 && quota.peak_bytes() >= bytes);
                            std::thread::yield_now();
                            folder.give_back(bytes);
                        }
                        Err(SpillError::Quota { asked_bytes, used_bytes, limit_bytes }) => {
                            assert!(asked_bytes == bytes && used_bytes <= 1_000 && used_bytes + bytes > limit_bytes);
                            refused += 1;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                refused
            });
        }
    });
    assert_eq!(quota.used_bytes(), 0);
    assert!(quota.peak_bytes() <= 1_000, "no more than was allowed was ever there");
}

/// B69: the text says which limit it was, with what was asked, used and allowed.
#[test]
fn a_refusal_by_the_disk_quota_says_so_with_its_numbers() {
    let parent = tempfile::tempdir().unwrap();
    let folder = folder(&parent, &DiskQuota::new(64 * MIB as u64));
    folder.take((63 * MIB + 512 * KIB) as u64).unwrap();
    let error = folder.take(MIB as u64).unwrap_err();
    assert_eq!(error.to_string(), "1 MiB more refused by the disk quota: 63.5 MiB used of 64 MiB");
    folder.give_back((63 * MIB + 512 * KIB) as u64);
}
