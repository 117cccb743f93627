//! How the command takes its options and how it fails: exit codes, what goes to which stream, the texts of errors, and
//! the command `expand`, which needs no index.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod command;
use command::{at, folder, names, run};

#[test]
fn help_explains_every_command_on_stdout_and_is_no_error() {
    for arguments in [
        &["--help"][..],
        &["build", "--help"],
        &["query", "--help"],
        &["verify", "--help"],
        &["expand", "--help"],
        &["compare", "--help"],
        &["inspect", "--help"],
        &["--version"],
        &["build", "-h"],
    ] {
        let said = run(arguments);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(said.stdout.contains("index-build"), "{said:?}");
    }
    let help = run(["build", "--help"]).stdout;
    for needed in [
        "[default: 32KiB]",
        "[default: 16MiB]",
        "powers of two",
        "[default: unlimited]",
        "--spill-quota <SIZE>",
        "143 after SIGTERM",
        "--json",
    ] {
        assert!(help.contains(needed), "{needed} in {help}");
    }
}

#[test]
fn a_wrong_option_is_a_usage_error_on_stderr() {
    for (arguments, text) in [
        (&["bild"][..], "unrecognized subcommand 'bild'"),
        (&["build"], "the following required arguments were not provided:"),
        (&["build", "--input", "x"], "the following required arguments were not provided:"),
        (&["build", "--input", "x", "--index", "y", "--nonsense"], "unexpected argument '--nonsense' found"),
        (&["build", "--input", "x", "--index", "y", "--format", "xml"], "invalid value 'xml' for '--format <FORMAT>'"),
        (&["build", "--input", "x", "--index", "y", "--threads", "0"], "invalid value '0' for '--threads <N>'"),
        (&["build", "--input", "x", "--index", "y", "--threads", "+1"], "invalid value '+1' for '--threads <N>'"),
        (&["query", "--index", "x"], "the following required arguments were not provided:"),
        (&["query", "--index", "x", "--term", "a", "--phrase", "b c"], "the argument '--term <T>' cannot be used with"),
        (&["compare", "--input", "x", "--modes", "on"], "invalid value 'on' for '--modes <MODES>'"),
        (&["compare", "--input", "x", "--rounds", "0"], "invalid value '0' for '--rounds <N>'"),
        (&["--json", "expand"], "the following required arguments were not provided:"),
    ] {
        let said = run(arguments);
        assert!(said.failure(2).starts_with(text), "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_size_is_read_strictly_and_zero_only_as_a_quantum() {
    let build = ["build", "--input", "x", "--index", "y"];
    let form = "a size is a whole number of bytes, or a whole number with KiB, MiB, GiB (powers of two) or kB, MB, GB \
                (powers of ten) right behind it, as in 64MiB";
    for (option, value, why) in [
        ("--budget", "1.5GiB", form),
        ("--budget", "64 MiB", form),
        ("--budget", "+1", form),
        ("--budget", "64mib", form),
        ("--budget", "0", "0 is not allowed here"),
        ("--floor", "0KiB", "0 is not allowed here"),
        ("--writer-cap", "0", "0 is not allowed here"),
        ("--spill-quota", "0", "0 is not allowed here"),
        ("--block-bytes", "0", "0 is not allowed here"),
        ("--batch-bytes", "0", "0 is not allowed here"),
        ("--batch-bytes", "17179869184GiB", "more bytes than this machine can address"),
        ("--quantum", "1TiB", form),
    ] {
        let said = run(build.iter().copied().chain([option, value]));
        let expected = format!("invalid value '{value}' for '{option} <SIZE>': {why}");
        assert!(said.failure(2).starts_with(&expected), "{said:?}");
    }
    // with a sign in front it is taken for the value, not for another option
    assert!(run(build.iter().copied().chain(["--budget=-1"])).failure(2).contains(form));
    assert!(
        run(["expand", "--input", "x", "--out", "y", "--seed", "1", "--bytes", "0"])
            .failure(2)
            .contains("0 is not allowed")
    );
}

#[test]
fn an_expansion_says_what_it_wrote() {
    let dir = folder(&[("in.log", b"GET /a1b2c3 200\nplain words")]);
    let (input, out) = (at(&dir, "in.log"), at(&dir, "out.log"));
    let options = ["expand", "--input", &input, "--out", &out, "--bytes", "50", "--seed", "7"];
    let said = run(options.iter().chain(&["--json"]));
    assert_eq!(said.json(), serde_json::json!({"passes": 2, "bytes": 55, "lines": 4}));
    assert_eq!(said.stderr, "");
    let written = std::fs::read(&out).unwrap();
    assert_eq!(written.len(), 55);
    assert!(written.starts_with(b"GET /a1b2c3 200\nplain words\nGET /") && written.ends_with(b" 200\nplain words"));

    let said = run(options);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    assert_eq!(said.stdout, "  passes   2\n  bytes    55 (55 B)\n  lines    4\n");
    assert_eq!(std::fs::read(&out).unwrap(), written, "the same seed makes the same file");
    assert_eq!(run(options.iter().chain(&["--quiet"])).stdout, "");
    assert_eq!(names(dir.path()), ["in.log", "out.log"]);
}

#[test]
fn an_expansion_that_cannot_be_done_leaves_everything_as_it_was() {
    let dir = folder(&[("in.log", b"abc12"), ("empty", b""), ("old", b"old")]);
    let expand = |input: &str, out: &str| {
        let (input, out) = (at(&dir, input), at(&dir, out));
        run(["expand", "--input", &input, "--out", &out, "--bytes", "1kB", "--seed", "1"])
    };
    assert_eq!(expand("in.log", "in.log").failure(2), format!("{}: --out is the input itself", at(&dir, "in.log")));
    assert_eq!(expand("in.log", "").failure(2), format!("{}: --out is a folder, not a file", at(&dir, "")));
    assert_eq!(expand("empty", "old").failure(1), format!("{}: an empty file cannot be expanded", at(&dir, "empty")));
    assert!(expand("none", "old").failure(1).starts_with(&format!("reading {}: ", at(&dir, "none"))));
    assert!(expand("", "old").failure(1).ends_with("not a regular file, cannot be read once for each pass"));
    assert!(expand("in.log", "no/such/out").failure(1).starts_with(&format!("creating {}", at(&dir, "no/such/"))));
    assert_eq!(std::fs::read(at(&dir, "old")).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["empty", "in.log", "old"]);
}

#[cfg(unix)]
#[test]
fn an_expansion_never_takes_the_place_of_a_device_or_a_socket() {
    use std::os::unix::fs::FileTypeExt;
    let dir = folder(&[("in.log", b"abc12")]);
    let out = at(&dir, "socket");
    let _socket = std::os::unix::net::UnixListener::bind(&out).unwrap();
    let said = run(["expand", "--input", &at(&dir, "in.log"), "--out", &out, "--bytes", "1kB", "--seed", "1"]);
    assert_eq!(said.failure(2), format!("{out}: --out is there and no regular file"));
    assert!(std::fs::metadata(&out).unwrap().file_type().is_socket());
    assert_eq!(names(dir.path()), ["in.log", "socket"]);
}

#[test]
fn an_expansion_may_have_the_longest_name_there_is() {
    let long = "n".repeat(255);
    let dir = folder(&[("in.log", b"abc12")]);
    let out = at(&dir, &long);
    run(["expand", "--input", &at(&dir, "in.log"), "--out", &out, "--bytes", "1kB", "--seed", "1", "--json"]).json();
    assert_eq!(names(dir.path()), ["in.log", &long]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_an_expansion_with_its_code_and_nothing_stays() {
    use std::process::Stdio;
    for (signal, code, text) in [
        (rustix::process::Signal::INT, 130, "interrupted, temporary files removed"),
        (rustix::process::Signal::TERM, 143, "terminated, temporary files removed"),
    ] {
        let dir = folder(&[("in.log", b"abc12 def\n")]);
        let (input, out) = (at(&dir, "in.log"), at(&dir, "out"));
        let mut command =
            command::start(["expand", "--input", &input, "--out", &out, "--bytes", "1000GB", "--seed", "1", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while names(dir.path()).len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("index-build: {text}\n"));
        assert!(output.stdout.is_empty());
        assert_eq!(names(dir.path()), ["in.log"]);
    }
}
