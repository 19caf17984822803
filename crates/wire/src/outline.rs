//! What the events of a reply have in common: nearly always all text but that of a few values, so that it
//! is read once and compared then.

use std::ops::Range;

use crate::scanner::JsonScanner;

/// The text of an event up to a value, but for some values before it: the holes.
///
/// A line that goes along it, each hole filled with a value of the kind that stood there, says the same as
/// the event that it was learned from, the holes apart; what stands behind the last hole is the caller's to
/// look at.
#[derive(Debug, Default)]
pub struct Outline {
    text: String,
    /// Where in the text each hole is.
    holes: Vec<usize>,
}

impl Outline {
    /// Learns a line, in which the values of the holes stand at these places, in this order. Places that
    /// are not in order are not learned: no line goes along it then.
    pub fn learn(&mut self, line: &str, holes: impl IntoIterator<Item = Range<usize>>) {
        self.forget();
        let mut from = 0;
        for hole in holes {
            let Some(stretch) = line.get(from..hole.start) else {
                return self.forget();
            };
            self.text.push_str(stretch);
            self.holes.push(self.text.len());
            from = hole.end;
        }
    }

    /// Goes along with nothing from now on.
    pub fn forget(&mut self) {
        self.text.clear();
        self.holes.clear();
    }

    /// Goes along a line: `fill` reads the value of each hole, by its number. The scanner that is returned
    /// stands behind the last one. `None` if the line is another.
    #[inline]
    pub fn follow<'a>(
        &self,
        line: &'a str,
        mut fill: impl FnMut(usize, &mut JsonScanner<'a>) -> Option<()>,
    ) -> Option<JsonScanner<'a>> {
        self.holes.first()?;
        let mut scanner = JsonScanner::new(line);
        let mut from = 0;
        for (number, hole) in self.holes.iter().enumerate() {
            let stretch = self.text.as_bytes().get(from..*hole)?;
            let rest = line.as_bytes().get(scanner.place()..)?;
            rest.starts_with(stretch).then_some(())?;
            scanner = JsonScanner::at(line, scanner.place() + stretch.len());
            fill(number, &mut scanner)?;
            from = *hole;
        }
        Some(scanner)
    }
}

#[cfg(test)]
mod tests {
    use super::Outline;

    #[test]
    fn lines_that_differ_in_their_holes_alone_go_along() {
        let mut outline = Outline::default();
        let read = |outline: &Outline, line: &str| {
            let (mut count, mut text) = (None, None);
            let scanner = outline.follow(line, |number, scanner| {
                match number {
                    0 => count = Some(scanner.count()?),
                    _ => text = Some(scanner.string()?.into_owned()),
                }
                Some(())
            })?;
            Some((count?, text?, line[scanner.place()..].to_owned()))
        };
        let line = r#"{"n":1,"t":"a","m":2}"#;
        assert_eq!(read(&outline, line), None);
        outline.learn(line, [5..6, 11..14]);
        for (line, found) in [
            (line, Some((1, "a", r#","m":2}"#))),
            (r#"{"n":20,"t":"\"b\"","o"#, Some((20, "\"b\"", r#","o"#))),
            (r#"{"n": 3,"t":""}"#, Some((3, "", "}"))),
            (r#"{"n":1.5,"t":"a"}"#, None),
            (r#"{"n":1,"u":"a"}"#, None),
            (r#"{"n":1,"t":2}"#, None),
            (r#"{"n":1"#, None),
            ("", None),
        ] {
            let found = found.map(|(count, text, rest)| (count, text.to_owned(), rest.to_owned()));
            assert_eq!(read(&outline, line), found, "{line}");
        }
        outline.learn(line, [11..14, 5..6]);
        assert_eq!(read(&outline, line), None);
    }
}
