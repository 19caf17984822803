//! Which schemas apply to which values, and so how much work checking a value is.
//!
//! A small schema can ask for exponential work: `a` says that `b` holds twice, `b` says that `c`
//! holds twice, and so on; or a recursive schema that goes the same way twice at each level. No time
//! limit can stop a validator, so the work is foretold: on the schema alone where that is enough,
//! and for recursive schemas on schema and value.
//!
//! The validator decides whether a value fits with a memory of pairs of schema and value: that work
//! is the number of pairs. When it tells what is wrong it has none: that work is the number of ways
//! on which a pair is reached.

use std::collections::HashMap;

use serde_json::Value;

use super::walk::walk;

/// How many schemas may apply, one within another, to one value.
const MAX_IN_PLACE_DEPTH: u64 = 48;

/// How many times a schema without recursion may have a value looked at.
const MAX_STATIC_WORK: u64 = 10_000;

/// How many pairs of schema and value there may be.
const MAX_PAIRS: usize = 200_000;

/// How many steps telling what is wrong may take.
const MAX_TOLD_WORK: u64 = 20_000;

/// How deep arguments may be nested.
const MAX_ARGUMENT_DEPTH: usize = 64;

/// How many steps of the validator may be open at once, which is what its stack holds.
const MAX_OPEN_STEPS: u64 = 512;

/// The schemas of a document, and where each leads. The root is the first.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// Whether the work depends on the value.
    needs_forecast: bool,
}

/// One schema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Schemas that apply to the same value.
    pub(super) in_place: Vec<usize>,
    /// Schemas that apply to values within.
    pub(super) within: Vec<(Select, usize)>,
}

/// To which values within a schema applies. Where it depends on more than a name, to all.
#[derive(Debug)]
pub(super) enum Select {
    Property(String),
    Properties,
    Names,
    Item(usize),
    Items,
}

impl Graph {
    /// The graph of a schema.
    ///
    /// # Errors
    /// The schema refers to something outside, leads to itself without end, or asks for too much.
    pub(super) fn new(root: &Value) -> Result<Self, String> {
        let nodes = walk(root)?;
        let in_place = measure(&nodes, |node, next| {
            node.in_place.iter().for_each(|&target| next(target));
        });
        if in_place
            .is_none_or(|size| size.depth > MAX_IN_PLACE_DEPTH || size.work > MAX_STATIC_WORK)
        {
            return Err(
                "its `$ref`, `allOf`, `anyOf` and `oneOf` lead to too many schemas for one value, \
                 or back to where they came from: make it flatter"
                    .to_owned(),
            );
        }
        let whole = measure(&nodes, |node, next| {
            node.in_place.iter().for_each(|&target| next(target));
            node.within.iter().for_each(|&(_, target)| next(target));
        });
        let needs_forecast =
            whole.is_none_or(|size| size.depth > MAX_OPEN_STEPS || size.work > MAX_STATIC_WORK);
        Ok(Self {
            nodes,
            needs_forecast,
        })
    }

    /// Whether arguments can be checked with bounded work, and if so, whether it can be told what is
    /// wrong with them.
    ///
    /// # Errors
    /// What to tell the model.
    pub(super) fn admit(&self, arguments: &Value) -> Result<Admission, String> {
        if is_deeper_than(arguments, MAX_ARGUMENT_DEPTH) {
            return Err(format!(
                "must not be nested deeper than {MAX_ARGUMENT_DEPTH} levels"
            ));
        }
        if !self.needs_forecast {
            return Ok(Admission::Whole);
        }
        let mut forecast = Forecast {
            nodes: &self.nodes,
            sizes: HashMap::new(),
        };
        match forecast.visit(0, arguments, 1) {
            Some(size) if size.work <= MAX_TOLD_WORK => Ok(Admission::Whole),
            Some(_) => Ok(Admission::Untold),
            None => Err("must be smaller or nested less deep: they cannot be checked".to_owned()),
        }
    }
}

/// What can be done with bounded work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Check, and tell what is wrong.
    Whole,
    /// Check only.
    Untold,
}

/// How much work something is.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Steps in all.
    work: u64,
    /// Steps that are open at once.
    depth: u64,
}

impl Size {
    const ONE: Self = Self { work: 1, depth: 1 };

    /// One step with another below.
    fn above(self, below: Self) -> Self {
        Self {
            work: self.work.saturating_add(below.work),
            depth: self.depth.max(below.depth.saturating_add(1)),
        }
    }
}

/// The largest size of any node along some edges; nothing if a node leads to itself. Depth first, on
/// a stack of its own: chains of references can be long.
fn measure(nodes: &[Node], edges: impl Fn(&Node, &mut dyn FnMut(usize))) -> Option<Size> {
    let mut sizes: Vec<Option<Size>> = vec![None; nodes.len()];
    let mut is_open = vec![false; nodes.len()];
    let mut largest = Size::ONE;
    for start in 0..nodes.len() {
        let mut stack = vec![start];
        while let Some(&node) = stack.last() {
            if sizes[node].is_some() {
                stack.pop();
                continue;
            }
            is_open[node] = true;
            let mut size = Size::ONE;
            let mut missing = Vec::new();
            edges(&nodes[node], &mut |target| match sizes[target] {
                Some(below) => size = size.above(below),
                None => missing.push(target),
            });
            if missing.iter().any(|&target| is_open[target]) {
                return None;
            }
            if missing.is_empty() {
                sizes[node] = Some(size);
                is_open[node] = false;
                largest.work = largest.work.max(size.work);
                largest.depth = largest.depth.max(size.depth);
            }
            stack.append(&mut missing);
        }
    }
    Some(largest)
}

/// Foretells the work of checking one value.
struct Forecast<'a> {
    nodes: &'a [Node],
    /// By schema and value, which is told by its address.
    sizes: HashMap<(usize, usize), Size>,
}

static A_NAME: Value = Value::Null;

impl Forecast<'_> {
    fn visit(&mut self, node: usize, value: &Value, open: u64) -> Option<Size> {
        let key = (node, std::ptr::from_ref(value) as usize);
        if let Some(&size) = self.sizes.get(&key) {
            return (open + size.depth <= MAX_OPEN_STEPS).then_some(size);
        }
        if open >= MAX_OPEN_STEPS || self.sizes.len() >= MAX_PAIRS {
            return None;
        }
        let mut size = Size::ONE;
        let nodes = self.nodes;
        for &target in &nodes[node].in_place {
            size = size.above(self.visit(target, value, open + 1)?);
        }
        for (select, target) in &nodes[node].within {
            let mut below = |within: &Value| {
                size = size.above(self.visit(*target, within, open + 1)?);
                Some(())
            };
            match (select, value) {
                (Select::Property(name), Value::Object(object)) => {
                    if let Some(within) = object.get(name) {
                        below(within)?;
                    }
                }
                (Select::Properties, Value::Object(object)) => {
                    object.values().try_for_each(below)?;
                }
                (Select::Names, Value::Object(object)) => {
                    object.keys().try_for_each(|_| below(&A_NAME))?;
                }
                (Select::Item(index), Value::Array(items)) => {
                    if let Some(within) = items.get(*index) {
                        below(within)?;
                    }
                }
                (Select::Items, Value::Array(items)) => items.iter().try_for_each(below)?,
                _ => {}
            }
        }
        self.sizes.insert(key, size);
        Some(size)
    }
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    if levels == 0 {
        return true;
    }
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(object) => object.values().any(|item| is_deeper_than(item, levels - 1)),
        _ => false,
    }
}
