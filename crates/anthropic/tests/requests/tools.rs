//! Tools, of the run, of the history and of the server, and the choice among them.

use raf_anthropic::{AnthropicRunOptions, AnthropicRunOptionsExt, Conflicts};
use raf_core::ToolChoice;
use serde_json::json;

use super::{body, called, hello, plain, tool, try_body};

#[test]
fn tools_stay_declared_while_the_history_has_calls() {
    let sent = body(&called(), &plain());
    assert_eq!(sent["tools"][0]["name"], "look");
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));
    let old = try_body("kimi", Conflicts::Refuse, &called(), &plain()).unwrap();
    assert_eq!(old["tools"][0]["name"], "look");
    assert!(old.get("tool_choice").is_none());
    // Where there is no word for `none`, what is not declared is not called.
    let none = plain()
        .with_tools([tool("look")])
        .with_tool_choice(ToolChoice::None);
    let old = try_body("kimi", Conflicts::Refuse, &hello(), &none).unwrap();
    assert!(old.get("tools").is_none() && old.get("tool_choice").is_none());
    assert_eq!(body(&hello(), &none)["tool_choice"]["type"], "none");
}

#[test]
fn tools_of_the_server_come_first_and_choices_have_their_forms() {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = AnthropicRunOptions::new().with_server_tools([search.clone()]);
    let options = plain()
        .with_tools([tool("look.here")])
        .with_anthropic(own)
        .with_tool_choice(ToolChoice::Named("look.here".to_owned()))
        .with_parallel_tool_calls(false);
    let sent = body(&hello(), &options);
    assert_eq!(sent["tools"][0], search);
    let name = sent["tools"][1]["name"].as_str().unwrap();
    assert!(name.starts_with("look_here_"), "{name}");
    let wanted = json!({"type": "tool", "name": name, "disable_parallel_tool_use": true});
    assert_eq!(sent["tool_choice"], wanted);
}
