//! Median, least and greatest of some figures: what a table of repeated measurements shows.
use serde::Serialize;

/// Of at least one figure; all 0 of none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        match sorted.as_slice() {
            [] => Spread::default(),
            [min, .., max] => {
                let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
                Spread { median: (low + high) / 2.0, min: *min, max: *max }
            }
            [only] => Spread { median: *only, min: *only, max: *only },
        }
    }

    /// `12.3 (11.9..12.8)`.
    pub fn text(&self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$}..{:.decimals$})", self.median, self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_two() {
        assert_eq!(Spread::of([3.0]), Spread { median: 3.0, min: 3.0, max: 3.0 });
        assert_eq!(Spread::of([5.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 5.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of([]), Spread::default());
        assert_eq!(Spread::of([5.0, 1.0, 2.0]).text(1), "2.0 (1.0..5.0)");
    }
}
