//! The hashes of a vocabulary's terms, and which term has which: open addressing, one word a place.
//!
//! A place holds a hash and a term's id + 1; 0 is a free place. Eight neighbours lie in one cache line, so that most
//! look-ups touch one line here and one record (a table with control bytes beside its entries touches two), and growth
//! needs nothing but the places themselves. At most three quarters of the places are taken.

/// Places of the smallest table.
const LEAST: usize = 8;

/// Finds terms by hash.
#[derive(Debug, Default)]
pub struct Table {
    /// a power of two of them, or none
    places: Vec<u64>,
    taken: usize,
}

impl Table {
    /// Its capacity.
    pub fn bytes(&self) -> usize {
        self.places.len() * size_of::<u64>()
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        4 * self.taken >= 3 * self.places.len()
    }

    /// What the next insertion will allocate: for good, and besides while the places are copied.
    #[inline(always)]
    pub fn growth_bytes(&self) -> (usize, usize) {
        match self.bytes() {
            _ if !self.is_full() => (0, 0),
            0 => (LEAST * size_of::<u64>(), 0),
            old => (old, old),
        }
    }

    /// What up to `terms` further terms will allocate at most: for good, and besides while places are copied.
    pub fn most_growth_bytes(&self, terms: usize) -> (usize, usize) {
        let mut places = self.places.len();
        // the last of them is inserted when all others have been
        while terms > 0 && 4 * (self.taken + terms - 1) >= 3 * places {
            places = (2 * places).max(LEAST);
        }
        let more = places - self.places.len();
        let copied = if more > 0 { places / 2 } else { 0 };
        (more * size_of::<u64>(), copied * size_of::<u64>())
    }

    /// The next term with this hash, from place `at` on, which begins as the hash and is left behind the place found.
    #[inline(always)]
    pub fn next(&self, hash: u32, at: &mut usize) -> Option<u32> {
        let mask = self.places.len().wrapping_sub(1);
        loop {
            let place = *self.places.get(*at & mask)?;
            if place == 0 {
                return None;
            }
            *at += 1;
            if (place >> 32) as u32 == hash {
                return Some(place as u32 - 1);
            }
        }
    }

    /// Adds a term that is not there. `id` is below `u32::MAX`.
    #[inline]
    pub fn insert(&mut self, hash: u32, id: u32) {
        if self.is_full() {
            self.grow();
        }
        put(&mut self.places, u64::from(hash) << 32 | u64::from(id + 1));
        self.taken += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut places = vec![0; (2 * self.places.len()).max(LEAST)];
        for &place in self.places.iter().filter(|&&place| place != 0) {
            put(&mut places, place);
        }
        self.places = places;
    }
}

/// Puts an entry into the first free place from its own on.
#[inline]
fn put(places: &mut [u64], entry: u64) {
    let mask = places.len() - 1;
    let mut at = (entry >> 32) as usize & mask;
    while places[at] != 0 {
        at = (at + 1) & mask;
    }
    places[at] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_found_also_where_hashes_collide() {
        let mut table = Table::default();
        let find = |table: &Table, hash: u32, id: u32| {
            let mut at = hash as usize;
            std::iter::from_fn(|| table.next(hash, &mut at)).find(|&found| found == id)
        };
        assert_eq!(find(&table, 0, 0), None);
        let hash = |id: u32| if id.is_multiple_of(3) { 7 } else { id.wrapping_mul(0x9E37_79B9) };
        let mut said = 0;
        for id in 0..3000 {
            assert_eq!(find(&table, hash(id), id), None);
            said += table.growth_bytes().0;
            table.insert(hash(id), id);
            assert_eq!(table.bytes(), said);
        }
        for id in 0..3000 {
            assert_eq!(find(&table, hash(id), id), Some(id));
        }
    }
}
