//! Reads scenario files, and refuses those that cannot be played, with line and what was expected.

mod agent;
mod check;
mod plan;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::Options;

pub(crate) use self::plan::{Action, LegPlan, Trigger, TriggerKind};
use crate::format::{Config, Expect, Mode, Ordered, RunOptions, ScenarioFile, Tool};

/// A case that can be played: a file's own, or one of its variants.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(crate) path: PathBuf,
    pub(crate) id: String,
    pub(crate) variant: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) tools: Ordered<Tool>,
    pub(crate) config: Config,
    pub(crate) options: RunOptions,
    pub(crate) not_over_http: Option<String>,
    pub(crate) no_reload: Option<String>,
    pub(crate) actions: Vec<Action>,
    pub(crate) expect: Expect,
}

impl Scenario {
    /// The cases of a file: its own first, then its variants.
    ///
    /// # Errors
    /// If the file cannot be read, is no scenario, or holds a step that is impossible.
    pub fn load(path: impl AsRef<Path>) -> Result<Vec<Self>, LoadError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| LoadError::new(path, 0, format!("cannot be read: {error}")))?;
        Self::parse(path, &text)
    }

    /// The cases of a file whose text is given.
    ///
    /// # Errors
    /// If the text is no scenario, or holds a step that is impossible.
    pub fn parse(path: impl AsRef<Path>, text: &str) -> Result<Vec<Self>, LoadError> {
        let path = path.as_ref();
        let file: ScenarioFile = serde_saphyr::from_str_with_options(text, yaml_options())
            .map_err(|error| LoadError::of_yaml(path, &error))?;
        let mut cases = Vec::new();
        if let Some(script) = &file.script {
            cases.push(Self {
                path: path.to_owned(),
                id: file.id.clone(),
                variant: None,
                mode: file.mode,
                tools: file.tools.clone(),
                config: file.config.clone(),
                options: file.options.clone(),
                not_over_http: file.not_over_http.clone(),
                no_reload: file.no_reload.clone(),
                actions: plan::actions(script, file.mode).map_err(|fault| fault.at(path))?,
                expect: file.expect.clone(),
            });
        }
        for variant in &file.variants {
            let own = &variant.value;
            let Some(script) = own.script.as_ref().or(file.script.as_ref()) else {
                return Err(LoadError::new(
                    path,
                    variant.line,
                    "the variant has no `script`, and the file has none either",
                ));
            };
            let further = |own: &Option<String>, whole: &Option<String>| match own {
                Some(own) => Some(own.clone()),
                None => whole.clone(),
            };
            cases.push(Self {
                path: path.to_owned(),
                id: file.id.clone(),
                variant: Some(own.name.clone()),
                mode: file.mode,
                tools: file.tools.overlaid(&own.tools),
                config: own.config.clone().unwrap_or_else(|| file.config.clone()),
                options: own.options.clone().unwrap_or_else(|| file.options.clone()),
                not_over_http: further(&own.not_over_http, &file.not_over_http),
                no_reload: further(&own.no_reload, &file.no_reload),
                actions: plan::actions(script, file.mode).map_err(|fault| fault.at(path))?,
                expect: own.expect.clone().unwrap_or_else(|| file.expect.clone()),
            });
        }
        if cases.is_empty() {
            return Err(LoadError::new(
                path,
                1,
                "there is neither a `script` nor a variant",
            ));
        }
        for case in &cases {
            check::scenario(case).map_err(|fault| fault.at(path))?;
        }
        Ok(cases)
    }

    /// The id, and the variant if it is one: `c01`, `c01 / killed`.
    pub fn name(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{} / {variant}", self.id),
            None => self.id.clone(),
        }
    }

    /// The id of the case.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn yaml_options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
    }
}

/// A file that is no scenario: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    path: PathBuf,
    line: u64,
    text: String,
}

impl LoadError {
    fn new(path: &Path, line: u64, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }

    fn of_yaml(path: &Path, error: &serde_saphyr::Error) -> Self {
        let line = error.location().map_or(0, |location| location.line());
        Self::new(path, line, error.without_snippet().to_string())
    }

    /// The line, from 1; 0 if the file as a whole is meant.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// What is wrong, and what was expected.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            0 => write!(f, "{path}: {}", self.text),
            line => write!(f, "{path}:{line}: {}", self.text),
        }
    }
}

impl std::error::Error for LoadError {}

/// Something impossible at a line.
#[derive(Debug)]
pub(crate) struct Impossible {
    line: u64,
    text: String,
}

impl Impossible {
    pub(crate) fn new(line: u64, text: impl Into<String>) -> Self {
        Self {
            line,
            text: text.into(),
        }
    }

    fn at(self, path: &Path) -> LoadError {
        LoadError::new(path, self.line, self.text)
    }
}

#[cfg(test)]
mod tests;
