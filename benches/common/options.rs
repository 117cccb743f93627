//! What a bench is told on its command line.

use std::time::SystemTime;

/// `--name VALUE` pairs, plain words, and whether `--test` says that it shall only show that it runs.
pub(crate) struct Options {
    arguments: Vec<String>,
}

impl Options {
    pub(crate) fn from_command_line() -> Self {
        // cargo bench adds `--bench` by itself.
        Options { arguments: std::env::args().skip(1).filter(|argument| argument != "--bench").collect() }
    }

    /// Run everything as short as can be.
    pub(crate) fn test(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "--test")
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    /// A list of numbers with commas.
    pub(crate) fn numbers(&self, name: &str) -> Option<Vec<usize>> {
        let numbers = self.value(name)?.split(',').map(|number| number.parse().ok());
        Some(numbers.collect::<Option<_>>().unwrap_or_else(|| {
            eprintln!("{name}: numbers with commas between are expected");
            std::process::exit(2);
        }))
    }

    /// Whether `name` is asked for: everything is, unless `option` gives parts of names, or whole ones after `=`, with commas
    /// between.
    pub(crate) fn wants(&self, option: &str, name: &str) -> bool {
        let wants = |part: &str| part.strip_prefix('=').map_or_else(|| name.contains(part), |whole| name == whole);
        self.value(option).is_none_or(|parts| parts.split(',').any(wants))
    }

    /// The first line of a bench's output: command, day and machine.
    pub(crate) fn announce(&self, command: &str) {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let days = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
        let (year, month, day) = date(days);
        println!(
            "{command} {}  ({cores} cores{}, {year}-{month:02}-{day:02})",
            self.arguments.join(" "),
            processor().map(|name| format!(" of {name}")).unwrap_or_default()
        );
    }
}

/// The processor's name, where the system says it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant's `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
