//! Shared by the targets of this package.
