//! What the process has used: processor time and resident memory, as Linux tells it; zeros elsewhere.
use std::fs;

/// User and system seconds so far.
pub(super) fn seconds() -> (f64, f64) {
    // after the name, which is in parentheses: state, ten further fields, then the two times in hundredths of a second,
    // the unit of this file on every Linux
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0) / 100.0;
    (next(), next())
}

/// Resident bytes now and at their highest.
pub(super) fn resident() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    };
    (bytes("VmRSS:"), bytes("VmHWM:"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn linux_tells_times_and_memory() {
        let (now, highest) = super::resident();
        assert!(now > 1 << 20 && highest >= now);
        let start = super::seconds();
        let mut sum = 0u64;
        while super::seconds().0 + super::seconds().1 < start.0 + start.1 + 0.02 {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
