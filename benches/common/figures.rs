//! Medians, with the least and the most.

/// What was measured in each round.
#[derive(Default)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    pub(crate) fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    pub(crate) fn median(&self) -> f64 {
        self.sorted().get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// `median (least to most)`, each as `show` writes it.
    pub(crate) fn text(&self, show: impl Fn(f64) -> String) -> String {
        format!("{} ({} to {})", show(self.median()), show(self.least()), show(self.most()))
    }
}

/// Nanoseconds for people.
pub(crate) fn nanos(ns: f64) -> String {
    match ns.abs() {
        abs if abs < 10.0 => format!("{ns:.2} ns"),
        abs if abs < 100.0 => format!("{ns:.1} ns"),
        abs if abs < 1e4 => format!("{ns:.0} ns"),
        abs if abs < 1e6 => format!("{:.1} us", ns / 1e3),
        _ => format!("{:.2} ms", ns / 1e6),
    }
}

/// A ratio as what it is over one.
pub(crate) fn percent(ratio: f64) -> String {
    let over = (ratio - 1.0) * 100.0;
    if over.abs() < 9.95 { format!("{over:+.1} %") } else { format!("{over:+.0} %") }
}
