//! Breakpoints of the prompt cache: how many, where, and how long they live.
//!
//! At most four over tools, instructions and messages, in which order the server processes them; one of
//! an hour never behind one of five minutes (vellum-ai/vellum-assistant#22191); none on empty text
//! (anthropics/claude-code#62379) or thinking.

use raf_core::{ChatMessage, Content, Result};
use serde_json::Value;

use super::Request;
use super::arrange::{Arranged, Piece};
use super::message::{Marks, render};
use super::settings::conflict;
use crate::dialect::Rules;
use crate::run_options::{CacheLifetime, PromptCaching};

/// Most breakpoints of one request.
const MOST: usize = 4;

/// A breakpoint of five minutes.
const FIVE_MINUTES: &str = r#"{"type":"ephemeral"}"#;

/// A breakpoint of an hour.
pub(super) const ONE_HOUR: &str = r#"{"type":"ephemeral","ttl":"1h"}"#;

/// A place of a breakpoint: section and piece. They are processed in this order.
type Place = (Section, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Tools,
    System,
    Turns,
}

/// The breakpoints of a piece: how many, and the longest life among them.
#[derive(Clone, Copy, Debug)]
struct Mark {
    place: Place,
    count: usize,
    lifetime: CacheLifetime,
    /// Put by itself, behind the last block of the piece.
    is_automatic: bool,
}

/// Writes the breakpoints into the pieces and the tools.
///
/// # Errors
/// More than four were given, and none may give way.
pub(super) fn mark(
    arranged: &mut Arranged,
    tools: &mut String,
    messages: &[ChatMessage],
    request: &Request<'_>,
) -> Result<()> {
    let (rules, model) = (&request.dialect.rules, request.model);
    let mut marks = explicit(arranged, tools, messages, rules, model);
    if marks.iter().map(|mark| mark.count).sum::<usize>() > MOST {
        conflict(
            request,
            "more than four cache breakpoints are set, and the Messages API takes no more: take \
             `cache_control` off some parts, the last ones matter most",
        )?;
        keep_last(&mut marks);
    }
    if let Some(caching) = request.own.caching {
        add_automatic(&mut marks, arranged, tools, caching);
    }
    if marks.is_empty() {
        return Ok(());
    }
    marks.sort_by_key(|mark| mark.place);
    let last_long = marks
        .iter()
        .rposition(|mark| mark.lifetime == CacheLifetime::OneHour);
    for (order, mark) in marks.iter().enumerate() {
        let is_long = last_long.is_some_and(|last| order <= last);
        apply(*mark, is_long, arranged, tools, messages, rules, model);
    }
    Ok(())
}

/// Keeps as many as there may be, those of the tools and the last. Of a piece that has too many its end
/// is marked.
fn keep_last(marks: &mut Vec<Mark>) {
    let mut room = MOST;
    marks.sort_by_key(|mark| {
        (
            mark.place.0 != Section::Tools,
            std::cmp::Reverse(mark.place),
        )
    });
    marks.retain_mut(|mark| {
        if mark.count > room {
            mark.count = room.min(1);
            mark.is_automatic = mark.place.0 != Section::Tools;
        }
        room -= mark.count;
        mark.count > 0
    });
}

/// Whether a part carries a breakpoint, and of an hour.
pub(super) fn given(content: &Content) -> Option<CacheLifetime> {
    let extra = match content {
        Content::Text(text) => &text.extra,
        Content::Image(media) | Content::File(media) => &media.extra,
        Content::ToolResult(result) => result.extra(),
        _ => return None,
    };
    let is_long = extra.get("cache_control")?["ttl"] == "1h";
    Some(if is_long {
        CacheLifetime::OneHour
    } else {
        CacheLifetime::FiveMinutes
    })
}

/// The breakpoints that stand with parts and with tools of the server.
fn explicit(
    arranged: &Arranged,
    tools: &str,
    messages: &[ChatMessage],
    rules: &Rules,
    model: &str,
) -> Vec<Mark> {
    let mut marks = Vec::new();
    if tools.contains(KEY) {
        let tools: Value = serde_json::from_str(tools).unwrap_or_default();
        let tools = tools.as_array().into_iter().flatten();
        let given: Vec<&Value> = tools.filter_map(|tool| tool.get("cache_control")).collect();
        if !given.is_empty() {
            let is_long = given.iter().any(|mark| mark["ttl"] == "1h");
            marks.push(Mark {
                place: (Section::Tools, 0),
                count: given.len(),
                lifetime: if is_long {
                    CacheLifetime::OneHour
                } else {
                    CacheLifetime::FiveMinutes
                },
                is_automatic: false,
            });
        }
    }
    if !arranged.has_given_marks {
        return marks;
    }
    for (place, message, json) in pieces(arranged) {
        let Some(message) = message.and_then(|at| messages.get(at)) else {
            continue;
        };
        let Some(lifetime) = message.contents().iter().filter_map(given).max() else {
            continue;
        };
        let marked = render(message, rules, model, Marks::AsGiven);
        let count = marked.matches(KEY).count() - json.matches(KEY).count();
        if count > 0 {
            marks.push(Mark {
                place,
                count,
                lifetime,
                is_automatic: false,
            });
        }
    }
    marks
}

const KEY: &str = r#""cache_control":"#;

fn pieces(arranged: &Arranged) -> impl Iterator<Item = (Place, Option<usize>, &str)> {
    let of = |section| move |(at, piece): (usize, _)| ((section, at), piece);
    let system = arranged.system.iter().enumerate().map(of(Section::System));
    let turns = arranged.pieces.iter().enumerate().map(of(Section::Turns));
    let pieces = system.chain(turns);
    pieces.map(|(place, piece): (_, &Piece)| (place, piece.message, &*piece.json))
}

/// Adds breakpoints as far as there is room, those that save the most first.
fn add_automatic(marks: &mut Vec<Mark>, arranged: &Arranged, tools: &str, caching: PromptCaching) {
    let ends = arranged
        .turns()
        .rev()
        .filter(|(is_user, _)| *is_user)
        .map(|(_, pieces)| (Section::Turns, pieces.end - 1))
        .take(caching.messages.into());
    let mut ends: Vec<Place> = ends.collect();
    let mut wanted: Vec<Place> = ends.drain(..ends.len().min(1)).collect();
    if caching.system && !arranged.system.is_empty() {
        wanted.push((Section::System, arranged.system.len() - 1));
    }
    if caching.tools && !tools.is_empty() {
        wanted.push((Section::Tools, 0));
    }
    wanted.extend(ends);
    let mut room = MOST - marks.iter().map(|mark| mark.count).sum::<usize>();
    for place in wanted {
        if room == 0 {
            return;
        }
        if marks.iter().any(|mark| mark.place == place) {
            continue;
        }
        room -= 1;
        marks.push(Mark {
            place,
            count: 1,
            lifetime: caching.lifetime,
            is_automatic: true,
        });
    }
}

fn apply(
    mark: Mark,
    is_long: bool,
    arranged: &mut Arranged,
    tools: &mut String,
    messages: &[ChatMessage],
    rules: &Rules,
    model: &str,
) {
    let value = if is_long { ONE_HOUR } else { FIVE_MINUTES };
    let (section, piece) = mark.place;
    if section == Section::Tools {
        if mark.is_automatic && tools.pop().is_some() {
            mark_last(tools, value);
            tools.push(']');
        }
        return;
    }
    let piece = match section {
        Section::System => arranged.system.get_mut(piece),
        _ => arranged.pieces.get_mut(piece),
    };
    let Some(piece) = piece else { return };
    let mut json = piece.json.to_string();
    if mark.is_automatic {
        mark_last(&mut json, value);
    } else if let Some(message) = piece.message.and_then(|at| messages.get(at)) {
        let marks = if is_long {
            Marks::OneHour
        } else {
            Marks::AsGiven
        };
        json = render(message, rules, model, marks);
    }
    piece.json = json.into();
}

/// Marks the last block of some, which end in its brace; one that is marked stays as it is.
pub(super) fn mark_last(json: &mut String, value: &str) {
    let is_marked = json
        .rfind(KEY)
        .and_then(|at| json.get(at + KEY.len()..json.len().saturating_sub(1)))
        .is_some_and(|rest| serde_json::from_str::<Value>(rest).is_ok());
    if !is_marked && json.pop().is_some() {
        json.push(',');
        json.push_str(KEY);
        json.push_str(value);
        json.push('}');
    }
}
