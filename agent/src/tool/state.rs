//! Application state by type, for the `&T` parameters of tools.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// The type of a value of state, with the name that error messages show.
///
/// ```
/// # use agent::tool::StateKey;
/// assert_eq!(StateKey::of::<u8>().name(), "u8");
/// ```
#[derive(Clone, Copy)]
pub struct StateKey {
    id: TypeId,
    /// The id of the type `Arc<T>`, to detect an `Arc` that was added as a value by mistake.
    in_arc: TypeId,
    name: &'static str,
}

impl StateKey {
    /// Returns the key of the type `T`, which may be a trait object or a slice.
    pub fn of<T: ?Sized + 'static>() -> Self {
        Self { id: TypeId::of::<T>(), in_arc: TypeId::of::<Arc<T>>(), name: type_name::<T>() }
    }

    /// Returns the type's name, as `std::any::type_name` gives it.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl PartialEq for StateKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for StateKey {}

impl Hash for StateKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// State by type, cheap to clone. Each value is an `Arc<T>`, stored as `Any`, so that `T` may be unsized.
#[derive(Clone)]
pub(crate) struct StateMap {
    values: Arc<StateValues>,
}

type StateValues = HashMap<StateKey, StateValue, BuildHasherDefault<TypeHasher>>;

/// The content of all empty maps, so that an empty map needs no allocation.
static EMPTY: LazyLock<Arc<StateValues>> = LazyLock::new(Arc::default);

impl Default for StateMap {
    fn default() -> Self {
        Self { values: EMPTY.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct StateValue {
    any: Arc<dyn Any + Send + Sync>,
    /// The address to which the `Arc<T>` points. Values are compared by this address.
    #[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "only an assistant compares values"))]
    pub(crate) address: usize,
}

/// A hasher that returns a `TypeId` unchanged, because it already is a hash.
#[derive(Clone, Default)]
struct TypeHasher(u64);

impl Hasher for TypeHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl StateMap {
    pub(crate) fn insert<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        value: Arc<T>,
    ) -> Result<(), StateKey> {
        let key = StateKey::of::<T>();
        if self.contains(&key) {
            return Err(key);
        }
        let address = Arc::as_ptr(&value).cast::<()>().addr();
        Arc::make_mut(&mut self.values).insert(key, StateValue { any: Arc::new(value), address });
        Ok(())
    }

    pub(crate) fn get<T: ?Sized + 'static>(&self) -> Option<&T> {
        if self.values.is_empty() {
            return None;
        }
        self.values.get(&StateKey::of::<T>())?.any.downcast_ref::<Arc<T>>().map(|value| &**value)
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn value(&self, key: &StateKey) -> Option<&StateValue> {
        self.values.get(key)
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn all(&self) -> impl Iterator<Item = &StateValue> {
        self.values.values()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn contains(&self, key: &StateKey) -> bool {
        self.values.contains_key(key)
    }

    /// Returns the values of both maps. Values of this map take precedence.
    #[cfg(any(feature = "runtime", feature = "mcp-server"))]
    pub(crate) fn over(&self, below: &Self) -> Self {
        if self.values.is_empty() {
            return below.clone();
        }
        let mut all = self.clone();
        if !below.values.is_empty() {
            let values = Arc::make_mut(&mut all.values);
            for (key, value) in &*below.values {
                values.entry(*key).or_insert_with(|| value.clone());
            }
        }
        all
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn without(&self, others: &Self) -> Self {
        if !others.values.keys().any(|key| self.values.contains_key(key)) {
            return self.clone();
        }
        let mut rest = self.clone();
        Arc::make_mut(&mut rest.values).retain(|key, _| !others.values.contains_key(key));
        rest
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn without_type<T: 'static>(mut self) -> Self {
        if self.contains(&StateKey::of::<T>()) {
            Arc::make_mut(&mut self.values).remove(&StateKey::of::<T>());
        }
        self
    }

    /// Returns whether a value of type `Arc<T>` was added, usually by mistake. `T` is the type of `key`.
    pub(crate) fn contains_arc_of(&self, key: &StateKey) -> bool {
        self.values.keys().any(|given| given.id == key.in_arc)
    }
}

impl fmt::Debug for StateMap {
    /// Writes only the types, because values may be secret and need not implement `Debug`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}
