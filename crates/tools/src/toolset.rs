//! What can be called in one request: tools of every origin, merged by name.

use std::collections::HashMap;

use raf_core::{Error, Result, ToolDeclaration};

use crate::registered::RegisteredTool;

/// The tools of one request, merged by name (contract D10).
///
/// Precedence: registered tools, then those given with the run's options, then declared-only ones,
/// then those of context providers, then hidden additional ones. Whatever wins, a twin of the same
/// name that requires approval makes it require approval: nothing loses its gate by being shadowed.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    entries: Vec<ToolEntry>,
    /// Of a set that is too large to be looked through.
    by_name: HashMap<String, usize>,
}

/// How many names are looked through one by one: a set is made for each request, and most are small.
const FEW: usize = 16;

/// One name that can be called.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolEntry {
    /// What stands behind the name.
    pub kind: ToolEntryKind,
    /// Whether each call waits for a person's yes: the tool's own word, or that of a twin.
    pub gated: bool,
    /// Whether the model is not told of it.
    pub hidden: bool,
}

/// What stands behind a name.
#[derive(Clone, Debug)]
pub enum ToolEntryKind {
    /// A tool that can be run.
    Body(RegisteredTool),
    /// A declaration alone: whoever made the request gives the results.
    DeclaredOnly(ToolDeclaration),
}

impl ToolEntry {
    /// The name.
    pub fn name(&self) -> &str {
        self.declaration().name()
    }

    /// What the model is told, or would be if the entry were not hidden.
    pub fn declaration(&self) -> &ToolDeclaration {
        match &self.kind {
            ToolEntryKind::Body(tool) => tool.declaration(),
            ToolEntryKind::DeclaredOnly(declaration) => declaration,
        }
    }

    /// The tool, if there is a body.
    pub fn body(&self) -> Option<&RegisteredTool> {
        match &self.kind {
            ToolEntryKind::Body(tool) => Some(tool),
            ToolEntryKind::DeclaredOnly(_) => None,
        }
    }
}

impl ToolSet {
    /// Merges one list per origin; see [`ToolSetBuilder`] where an origin has several sources.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if one list holds a name
    /// twice; both are named.
    pub fn merge(
        registered: &[RegisteredTool],
        per_run: &[RegisteredTool],
        context: &[RegisteredTool],
        additional: &[RegisteredTool],
        declared: &[ToolDeclaration],
    ) -> Result<Self> {
        Ok(Self::builder()
            .with_source("the registered tools", registered)?
            .with_source("the tools given with the run", per_run)?
            .with_declared(declared)?
            .with_source("the tools of context providers", context)?
            .with_hidden_source("the additional tools", additional)?
            .build())
    }

    /// Starts an empty set, to which sources are added in order of precedence.
    pub fn builder() -> ToolSetBuilder {
        ToolSetBuilder(Self::default())
    }

    /// What stands behind a name, hidden or not.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.position(name).map(|index| &self.entries[index])
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.entries.len() <= FEW {
            return self.entries.iter().position(|entry| entry.name() == name);
        }
        self.by_name.get(name).copied()
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ToolEntry> {
        self.entries.iter()
    }

    /// The names that the model is told of, in order.
    pub fn visible_names(&self) -> impl Iterator<Item = &str> {
        self.visible().map(ToolEntry::name)
    }

    /// What the model is told, in order.
    pub fn declarations(&self) -> Vec<ToolDeclaration> {
        self.visible()
            .map(|entry| entry.declaration().clone())
            .collect()
    }

    fn visible(&self) -> impl Iterator<Item = &ToolEntry> {
        self.entries.iter().filter(|entry| !entry.hidden)
    }

    /// How many names there are, hidden ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Builds a [`ToolSet`]: what is added first wins where names clash.
#[derive(Clone, Debug, Default)]
pub struct ToolSetBuilder(ToolSet);

impl ToolSetBuilder {
    /// Adds the tools of one source. `origin` names it in errors: `the registered tools`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if it holds a name twice.
    pub fn with_source(self, origin: &str, tools: &[RegisteredTool]) -> Result<Self> {
        self.add_tools(origin, tools, false)
    }

    /// Adds tools that can be called and that the model is not told of.
    ///
    /// # Errors
    /// As [`ToolSetBuilder::with_source`].
    pub fn with_hidden_source(self, origin: &str, tools: &[RegisteredTool]) -> Result<Self> {
        self.add_tools(origin, tools, true)
    }

    /// Adds declarations. One whose name has a body by now adds nothing.
    ///
    /// # Errors
    /// As [`ToolSetBuilder::with_source`].
    pub fn with_declared(mut self, declarations: &[ToolDeclaration]) -> Result<Self> {
        refuse_duplicates("the declared tools", &declarations.iter())?;
        for declaration in declarations {
            self.add(ToolEntry {
                kind: ToolEntryKind::DeclaredOnly(declaration.clone()),
                gated: false,
                hidden: false,
            });
        }
        Ok(self)
    }

    /// The set.
    pub fn build(self) -> ToolSet {
        self.0
    }

    fn add_tools(mut self, origin: &str, tools: &[RegisteredTool], hidden: bool) -> Result<Self> {
        refuse_duplicates(origin, &tools.iter().map(RegisteredTool::declaration))?;
        for tool in tools {
            self.add(ToolEntry {
                gated: tool.tool().requires_approval(),
                kind: ToolEntryKind::Body(tool.clone()),
                hidden,
            });
        }
        Ok(self)
    }

    fn add(&mut self, entry: ToolEntry) {
        let set = &mut self.0;
        if let Some(index) = set.position(entry.name()) {
            set.entries[index].gated |= entry.gated;
            return;
        }
        set.entries.push(entry);
        if set.entries.len() > FEW {
            for index in set.by_name.len()..set.entries.len() {
                let name = set.entries[index].name().to_owned();
                set.by_name.insert(name, index);
            }
        }
    }
}

fn refuse_duplicates<'a>(
    origin: &str,
    declarations: &(impl ExactSizeIterator<Item = &'a ToolDeclaration> + Clone),
) -> Result<()> {
    let places = || declarations.clone().enumerate();
    let mut seen: HashMap<&str, (usize, &ToolDeclaration)> = HashMap::new();
    for second in places() {
        let name = second.1.name();
        let first = if declarations.len() <= FEW {
            let mut before = places().take(second.0);
            before.find(|(_, first)| first.name() == name)
        } else {
            seen.insert(name, second)
        };
        if let Some(first) = first {
            return Err(duplicate(origin, first, second));
        }
    }
    Ok(())
}

/// The error for two tools of one name in one source.
pub(crate) fn duplicate(
    origin: &str,
    first: (usize, &ToolDeclaration),
    second: (usize, &ToolDeclaration),
) -> Error {
    let describe = |(position, declaration): (usize, &ToolDeclaration)| {
        let description = declaration.description();
        let mut text: String = description.chars().take(60).collect();
        if text.len() < description.len() {
            text.push('…');
        }
        format!("number {} (\"{text}\")", position + 1)
    };
    Error::configuration(format!(
        "two of {origin} have the name '{}': {} and {}. Rename one of them, or put one source in a \
         namespace with `namespaced`",
        second.1.name(),
        describe(first),
        describe(second),
    ))
}

#[cfg(test)]
mod tests;
