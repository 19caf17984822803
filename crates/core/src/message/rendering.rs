//! What a message was rendered to, kept with it: per dialect, once.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The dialect that a message is rendered in: a provider makes one for each set of rules that it
/// renders by, when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RenderKey(u64);

impl RenderKey {
    /// A key that no other call returns.
    pub fn unique() -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The renderings of one message.
#[derive(Default)]
pub(super) struct Renderings {
    /// The first, which is the only one nearly always: read without a lock.
    first: OnceLock<(RenderKey, Arc<str>)>,
    /// Three more, those used last.
    others: Mutex<Vec<(RenderKey, Arc<str>)>>,
}

impl Renderings {
    /// The rendering of a key, made if there is none.
    pub(super) fn get(&self, key: RenderKey, render: impl FnOnce() -> Arc<str>) -> Arc<str> {
        let mut render = Some(render);
        let (of, text) = self.first.get_or_init(|| {
            let render = render.take().expect("it renders once");
            (key, render())
        });
        match render {
            Some(render) if *of != key => self.other(key, render),
            _ => Arc::clone(text),
        }
    }

    fn other(&self, key: RenderKey, render: impl FnOnce() -> Arc<str>) -> Arc<str> {
        let others = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = |others: &Vec<(RenderKey, Arc<str>)>| {
            let found = others.iter().find(|(of, _)| *of == key);
            found.map(|(_, text)| Arc::clone(text))
        };
        if let Some(text) = kept(&others()) {
            return text;
        }
        let text = render();
        let mut others = others();
        if let Some(first) = kept(&others) {
            return first;
        }
        if others.len() == 3 {
            others.remove(0);
        }
        others.push((key, Arc::clone(&text)));
        text
    }
}
