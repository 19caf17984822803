//! Looks for what must not be anywhere.

use super::all_events;
use crate::format::Never;
use crate::notation::{EventPattern, Line, LinePattern, show};
use crate::play::Player;

/// What happened although it never should.
pub(super) fn happened(player: &Player<'_>, never: &Never) -> Option<String> {
    match never {
        Never::Text(text) => {
            let json = |value: Result<String, _>| value.unwrap_or_default().contains(text.as_str());
            let nested = player.legs.iter().flat_map(|leg| &leg.seen.nested);
            let nested = nested.map(|seen| &seen.request);
            let in_requests = player
                .requests
                .iter()
                .chain(nested)
                .any(|request| json(serde_json::to_string(&request.messages)));
            let mut items = player.legs.iter().flat_map(|leg| &leg.seen.items);
            let in_events = items.any(|item| match item {
                Ok(update) => json(serde_json::to_string(update)),
                Err(error) => format!("{error} {error:?}").contains(text.as_str()),
            });
            let place = match (in_requests, in_events) {
                (false, false) => return None,
                (true, _) => "a request",
                (_, true) => "an event",
            };
            Some(format!("the text '{text}' stands in {place}"))
        }
        Never::Logged(text) => {
            let logged = player.log.text();
            let line = logged.lines().find(|line| line.contains(text.as_str()))?;
            Some(format!("the text '{text}' was logged: {line}"))
        }
        Never::Event(event) => {
            let pattern = EventPattern::parse(event).ok()?;
            let events = all_events(player);
            let found = events.iter().find(|event| pattern.fits(event))?;
            Some(format!("the event `{}` happened", show(found)))
        }
        Never::Line(line) => {
            let pattern = LinePattern::parse(line).ok()?;
            let requests = player.requests.iter().enumerate();
            let mut lines = requests.flat_map(|(index, request)| {
                let lines = Line::of(&request.messages).into_iter();
                lines.map(move |line| (index + 1, line))
            });
            let (number, line) = lines.find(|(_, line)| pattern.fits(line))?;
            Some(format!("request {number} holds `{line}`"))
        }
        Never::Entered(id) => {
            let mut entries = player.legs.iter().flat_map(|leg| &leg.entries);
            let (tool, _) = entries.find(|(_, entry)| entry.call_id == *id)?;
            Some(format!("'{tool}' was entered for '{id}'"))
        }
        Never::EnteredWith(tool, arguments) => {
            let mut entries = player.legs.iter().flat_map(|leg| &leg.entries);
            entries.find(|(own, entry)| {
                own == tool && arguments.as_object() == Some(&entry.arguments)
            })?;
            Some(format!("'{tool}' was entered with {arguments}"))
        }
        Never::MoreRequestsThan(most) => {
            let is = player.requests.len();
            (is > *most).then(|| format!("{is} model requests were made, {most} were allowed"))
        }
    }
}
