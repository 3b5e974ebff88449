// SPDX-License-Identifier: MIT
//! Mapped files, as handles: bytes are reached through transactions and queries only.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use xac_sys as sys;

use crate::env::{whole_pages, FileId, Inner};
use crate::error::Error;

/// A mapped file, as `len()` elements.  [`Tx`](crate::Tx) and [`Query`](crate::Query) lend slices of it.
///
/// It keeps its environment open, and unmaps the file when it is dropped.
pub struct Mapping<T: Pod> {
    inner: Arc<Inner>,
    base: *mut u8,
    len: usize,
    file: FileId,
    _elements: PhantomData<T>,
}

// SAFETY: a handle; elements are reached by the thread that has the turn only.
unsafe impl<T: Pod + Send> Send for Mapping<T> {}
unsafe impl<T: Pod + Send> Sync for Mapping<T> {}

impl<T: Pod> Mapping<T> {
    pub(crate) fn new(inner: Arc<Inner>, base: *mut u8, len: usize, file: FileId) -> Self {
        Mapping {
            inner,
            base,
            len,
            file,
            _elements: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a mapping has at least one element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Make it longer or shorter.  The file grows with zero bytes, and never becomes shorter.
    ///
    /// The address may change; `&mut self` sees to it that no slice is lent.  Not inside of a
    /// transaction ([`ErrorKind::Nested`](crate::ErrorKind::Nested)).
    pub fn resize(&mut self, count: usize) -> Result<(), Error> {
        let bytes = whole_pages::<T>(count)?;
        let _turn = self.inner.take_turn()?;
        // SAFETY: our mapping, and no slice is lent.
        let base = unsafe {
            sys::xac_mremap_in(self.inner.raw(), self.base.cast(), bytes, sys::XAC_MAY_MOVE)
        };
        if base as isize == -1 {
            return Err(Error::of_errno());
        }
        self.base = base.cast();
        self.len = count;
        Ok(())
    }

    /// The first element, for a transaction of `inner`.
    ///
    /// # Panics
    ///
    /// If the mapping belongs to another environment.
    pub(crate) fn base_in(&self, inner: &Inner) -> *mut T {
        assert!(
            std::ptr::eq(&*self.inner, inner),
            "the mapping belongs to another environment than the transaction"
        );
        self.base.cast()
    }
}

impl<T: Pod> Drop for Mapping<T> {
    fn drop(&mut self) {
        self.inner.unmap(self.base, self.file);
    }
}

impl<T: Pod> fmt::Debug for Mapping<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
