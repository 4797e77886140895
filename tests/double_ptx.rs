//! The stand-in that executes PTX.
