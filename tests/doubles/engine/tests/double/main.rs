//! The engine of the stand-ins for drivers does what drivers do, and notices what they would punish.

mod bench;
mod captures;
mod faults;
mod orders;
mod ownership;
