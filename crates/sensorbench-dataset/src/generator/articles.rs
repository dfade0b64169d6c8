//! Articles whose sizes and words are those of a real collection. Article k is a function of the seed and k alone, so that any
//! thread or machine can make any range of them.
//!
//! A size is the quantile of a random share. A text is words drawn independently by their frequencies, until it has exactly its
//! size: it has the vocabulary of real text, and neither grammar nor meaning. Words that are too rare to be listed are made up,
//! with frequencies that fall as one over their rank (Zipf, "Human Behavior and the Principle of Least Effort", 1949).

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use libm::{exp, log};
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::parallel::Parts;

/// Articles that make a part: some megabytes.
const ARTICLES_A_PART: u64 = 128;
/// How many words can be made up.
const MADE_UP_WORDS: f64 = 1e6;
const CONSONANTS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";
const VOWELS: &[u8; 5] = b"aeiou";

/// What is known of a collection.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ArticlesPlan {
    /// Quantiles of the sizes: shares from 0 to 1, rising, and bytes of UTF-8.
    pub sizes: Vec<(f64, f64)>,
    /// Words, and how often each is there.
    pub words: Vec<(String, u64)>,
    /// How often words are there that are not listed.
    pub other_words: u64,
    /// Words from one end of a line to the next.
    pub words_a_line: f64,
    /// How many different texts there are: article `distinct` + 1 has the text of article 1 again.
    pub distinct: u64,
}

// What the streams of an article are used for.
const SIZE: u64 = 0;
const WORDS: u64 = 1;
const MADE_UP: u64 = 2;
const LINES: u64 = 3;

/// Articles as a generator: those with a range of ids, which begin with 1.
pub struct Articles {
    plan: ArticlesPlan,
    /// For each word, how often it and all words before it are there.
    until: Vec<u64>,
    stream: Stream,
    ids: Range<u64>,
}

impl Articles {
    /// The articles with these ids.
    pub fn new(plan: ArticlesPlan, seed: u64, ids: Range<u64>) -> Self {
        let count = |sum: &mut u64, (_, count): &(String, u64)| {
            *sum += count;
            Some(*sum)
        };
        Self { until: plan.words.iter().scan(0, count).collect(), stream: Stream::new(seed), ids, plan }
    }

    fn size(&self, share: f64) -> usize {
        let sizes = &self.plan.sizes;
        let above = sizes.partition_point(|(until, _)| *until <= share).clamp(1, sizes.len() - 1);
        let ((low, low_bytes), (high, high_bytes)) = (sizes[above - 1], sizes[above]);
        (low_bytes + (high_bytes - low_bytes) * (share - low) / (high - low) + 0.5) as usize
    }

    /// The text of an article.
    fn append_text(&self, id: u64, text: &mut String) {
        let number = (id - 1) % self.plan.distinct;
        let end = text.len() + self.size(self.stream.split(SIZE).unit(number));
        let [words, made_up, lines] = [WORDS, MADE_UP, LINES].map(|purpose| self.stream.split(purpose).split(number));
        let listed = self.until.last().copied().unwrap_or(0);
        for place in 0.. {
            let before = text.len();
            let drawn = words.below(place, listed + self.plan.other_words);
            if drawn < listed {
                text.push_str(&self.plan.words[self.until.partition_point(|until| *until <= drawn)].0);
            } else {
                append_made_up(exp(made_up.unit(place) * log(MADE_UP_WORDS)) as u64, text);
            }
            text.push(if lines.unit(place) * self.plan.words_a_line < 1.0 { '\n' } else { ' ' });
            if text.len() > end {
                text.truncate(before);
                text.extend(std::iter::repeat_n('.', end - before));
                return;
            }
        }
    }
}

/// The word with a rank: as many syllables as it takes, at least two.
fn append_made_up(rank: u64, text: &mut String) {
    let syllables = (CONSONANTS.len() * VOWELS.len()) as u64;
    let (mut rest, mut number) = (rank, 0);
    while rest > 0 || number < 2 {
        let syllable = (rest % syllables) as usize;
        text.push(char::from(CONSONANTS[syllable / VOWELS.len()]));
        text.push(char::from(VOWELS[syllable % VOWELS.len()]));
        (rest, number) = (rest / syllables, number + 1);
    }
}

impl Parts for Articles {
    fn parts(&self) -> usize {
        (self.ids.end - self.ids.start).div_ceil(ARTICLES_A_PART) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let first = self.ids.start + number as u64 * ARTICLES_A_PART;
        let ids = first..(first + ARTICLES_A_PART).min(self.ids.end);
        let text = |id| {
            let mut text = String::new();
            self.append_text(id, &mut text);
            text
        };
        let columns: [ArrayRef; 3] = [
            Arc::new(Int64Array::from_iter_values(ids.clone().map(|id| id as i64))),
            Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("Article {id}")))),
            Arc::new(LargeStringArray::from_iter_values(ids.map(text))),
        ];
        RecordBatch::try_new(self.schema(), columns.to_vec()).expect("columns of the schema, of one length")
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("title", DataType::Utf8, false),
            Field::new("text", DataType::LargeUtf8, false),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;
    use crate::generator::GeneratedRows;

    fn plan(distinct: u64) -> ArticlesPlan {
        ArticlesPlan {
            sizes: vec![(0.0, 10.0), (0.5, 100.0), (0.9, 1000.0), (1.0, 20_000.0)],
            words: vec![("the".to_owned(), 60), ("γη".to_owned(), 30)],
            other_words: 10,
            words_a_line: 8.0,
            distinct,
        }
    }

    fn articles(distinct: u64, ids: Range<u64>, threads: usize) -> Vec<(i64, String)> {
        let mut articles = Vec::new();
        for batch in GeneratedRows::new(Arc::new(Articles::new(plan(distinct), 42, ids)), threads).map(Result::unwrap) {
            let ids = batch.column(0).as_primitive::<Int64Type>().values();
            let texts = batch.column(2).as_string::<i64>().iter().map(|text| text.unwrap().to_owned());
            articles.extend(ids.iter().copied().zip(texts));
        }
        articles
    }

    #[test]
    fn any_range_is_the_same_with_any_number_of_threads() {
        let whole = articles(1000, 1..1001, 1);
        assert_eq!(whole.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..1001).collect::<Vec<_>>());
        assert_eq!(articles(1000, 1..1001, 5), whole);
        assert_eq!(articles(1000, 301..702, 3), whole[300..701]);
    }

    #[test]
    fn after_all_different_texts_the_first_comes_again() {
        let twice = articles(300, 1..601, 1);
        assert!((0..300).all(|number| twice[number].1 == twice[number + 300].1));
        assert_ne!(twice[0].1, twice[1].1);
    }

    #[test]
    fn sizes_have_the_quantiles() {
        let mut sizes: Vec<usize> = articles(20_000, 1..20_001, 2).iter().map(|(_, text)| text.len()).collect();
        sizes.sort_unstable();
        for (share, expected) in [(0.25, 55.0), (0.5, 100.0), (0.7, 550.0), (0.9, 1000.0), (0.95, 10_500.0)] {
            let found = sizes[(share * sizes.len() as f64) as usize] as f64;
            assert!((found / expected - 1.0).abs() < 0.1, "{share}: {found} and not {expected}");
        }
        assert!(sizes[0] >= 10 && sizes[sizes.len() - 1] <= 20_000);
    }

    #[test]
    fn words_have_their_frequencies_and_rare_ones_are_many() {
        let articles = articles(2_000, 1..2_001, 2);
        let words: Vec<&str> = articles.iter().flat_map(|(_, text)| text.split_whitespace()).collect();
        let share = |word: &str| words.iter().filter(|found| **found == word).count() as f64 / words.len() as f64;
        assert!((share("the") - 0.6).abs() < 0.01 && (share("γη") - 0.3).abs() < 0.01);
        let rare: std::collections::HashSet<&str> = words.into_iter().filter(|word| !["the", "γη"].contains(word)).collect();
        assert!(rare.len() > 1_000, "{}", rare.len());
        let lines: usize = articles.iter().map(|(_, text)| text.matches('\n').count()).sum();
        let blanks: usize = articles.iter().map(|(_, text)| text.matches(' ').count()).sum();
        assert!((blanks as f64 / lines as f64 - 7.0).abs() < 0.2);
    }

    #[test]
    fn the_first_articles_are_these_on_every_machine() {
        let sum = articles(500, 1..501, 1)
            .iter()
            .flat_map(|(_, text)| text.bytes())
            .fold(0u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        assert_eq!(sum, 12_089_721_474_910_196_938);
    }
}
