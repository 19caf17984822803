//! Per-run things that only some layers know, by type.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A map from a type to one value of it. Cheap to clone; a change copies the map, not the values.
///
/// `Debug` names the types only.
#[derive(Clone, Default)]
pub struct Extensions(Arc<BTreeMap<TypeId, Entry>>);

#[derive(Clone)]
struct Entry {
    name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl Extensions {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let entry = self.0.get(&TypeId::of::<T>())?;
        Arc::clone(&entry.value).downcast().ok()
    }

    /// Sets the value of its type.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.insert_shared(Arc::new(value));
    }

    /// Sets the value of its type, shared.
    pub fn insert_shared<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        let entry = Entry {
            name: type_name::<T>(),
            value,
        };
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), entry);
    }

    /// Takes the value of a type out.
    pub fn remove<T: Any + Send + Sync>(&mut self) -> Option<Arc<T>> {
        if !self.0.contains_key(&TypeId::of::<T>()) {
            return None;
        }
        let entry = Arc::make_mut(&mut self.0).remove(&TypeId::of::<T>())?;
        entry.value.downcast().ok()
    }

    /// Lays another map over this one: where both have a value of a type, the other's wins.
    pub fn lay_over(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
        } else if !other.is_empty() {
            let entries = other.0.iter().map(|(id, entry)| (*id, entry.clone()));
            Arc::make_mut(&mut self.0).extend(entries);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.values().map(|entry| entry.name))
            .finish()
    }
}
