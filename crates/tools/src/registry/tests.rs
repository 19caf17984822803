//! Names, order, running by hand, namespaces, sources.

use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use raf_core::{ChatClientRunOptions, ErrorKind, ToolDeclaration};
use serde_json::json;

use super::{ExecuteError, ToolRegistry};
use crate::{
    ITool, IToolSource, NamespacedTools, ToolArguments, ToolContext, ToolError, ToolOptionsExt,
    ToolOutput,
};

#[derive(Debug)]
pub(crate) struct Named {
    declaration: ToolDeclaration,
    gated: bool,
}

pub(crate) fn named(name: &str) -> Named {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    Named {
        declaration: ToolDeclaration::new(name, format!("Is {name}")).with_parameters(&schema),
        gated: false,
    }
}

impl Named {
    pub(crate) fn gated(mut self) -> Self {
        self.gated = true;
        self
    }

    fn described(mut self, description: &str) -> Self {
        self.declaration = ToolDeclaration::new(self.declaration.name(), description);
        self
    }
}

#[async_trait]
impl ITool for Named {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(format!(
            "{} {}",
            context.tool_name(),
            serde_json::Value::Object(arguments)
        )))
    }

    fn requires_approval(&self) -> bool {
        self.gated
    }
}

#[test]
fn order_is_kept_and_names_are_unique() {
    let registry = ToolRegistry::builder()
        .with_tool(named("b"))
        .with_tool(named("a"))
        .build()
        .unwrap();
    assert_eq!(registry.tool_names().collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(registry.tool_definitions()[1].description(), "Is a");
    assert!(registry.get("a").is_some() && registry.get("c").is_none());

    let error = ToolRegistry::builder()
        .with_tool(named("a").described("The first"))
        .with_tool(named("a").described("The second"))
        .build()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    for part in [
        "'a'",
        "number 1 (\"The first\")",
        "number 2 (\"The second\")",
        "Rename",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn register_leaves_clones_and_a_failed_registry_as_they_were() {
    let mut registry = ToolRegistry::new();
    registry.register(named("a")).unwrap();
    let before = registry.clone();
    registry.register(named("b")).unwrap();
    registry.register(named("b")).unwrap_err();
    registry.register(named("no name")).unwrap_err();
    assert_eq!((before.len(), registry.len()), (1, 2));
}

#[test]
fn a_bad_schema_names_the_tool() {
    let mut tool = named("weather");
    tool.declaration = tool.declaration.with_parameters(&json!({"type": "objekt"}));
    let error = ToolRegistry::builder().with_tool(tool).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("'weather'"), "{error}");
}

#[tokio::test]
async fn execute_validates_and_refuses() {
    let registry = ToolRegistry::builder()
        .with_tool(named("a"))
        .with_tool(named("g").gated())
        .build()
        .unwrap();
    let output = registry.execute("a", json!({"n": 1})).await.unwrap();
    assert!(matches!(output, ToolOutput::Text(text) if text == r#"a {"n":1}"#));
    registry.execute("a", json!(null)).await.unwrap();

    let refused = registry.execute("a", json!({"n": "x"})).await.unwrap_err();
    assert!(
        matches!(refused, ExecuteError::InvalidArguments(_)),
        "{refused}"
    );
    let refused = registry.execute("a", json!([])).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("must be a JSON object, not an array"),
        "{refused}"
    );
    let refused = registry.execute("g", json!({})).await.unwrap_err();
    assert!(
        matches!(refused, ExecuteError::ApprovalRequired { .. }),
        "{refused}"
    );
    let refused = registry.execute("x", json!({})).await.unwrap_err();
    assert_eq!(refused.to_string(), "there is no tool 'x'; there are: a, g");
}

#[tokio::test]
async fn namespaces() {
    let registry = ToolRegistry::builder()
        .with_tool(named("read"))
        .with_tool(named("wipe").gated())
        .build()
        .unwrap();
    let renamed = registry.namespaced("files").unwrap();
    assert_eq!(
        renamed.tool_names().collect::<Vec<_>>(),
        ["files__read", "files__wipe"]
    );
    assert!(
        renamed
            .get("files__wipe")
            .unwrap()
            .tool()
            .requires_approval()
    );
    assert_eq!(renamed.tool_definitions()[0].name(), "files__read");
    renamed
        .execute("files__read", json!({"n": 1}))
        .await
        .unwrap();
    renamed
        .execute("files__read", json!({"n": "x"}))
        .await
        .unwrap_err();
    registry.namespaced("not good").unwrap_err();

    let source = NamespacedTools::new("files", registry).unwrap();
    assert_eq!(source.tools().await.unwrap()[0].name(), "files__read");
}

#[tokio::test]
async fn sources_in_options_add_up() {
    let registry = ToolRegistry::builder()
        .with_tool(named("a"))
        .build()
        .unwrap();
    let live = Arc::new(RwLock::new(ToolRegistry::new()));
    let options = ChatClientRunOptions::new()
        .with_provider_tools(registry.clone())
        .with_provider_tools(Arc::clone(&live));
    let sources = options.provider_tools();
    assert_eq!(sources.len(), 2);
    assert_eq!(sources[0].tools().await.unwrap()[0].name(), "a");
    assert!(sources[1].tools().await.unwrap().is_empty());
    live.write().unwrap().register(named("late")).unwrap();
    assert_eq!(sources[1].tools().await.unwrap()[0].name(), "late");
}
