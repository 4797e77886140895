//! The double of AMD's driver through its own entry points: programs on two devices in all orders, what it says to mistakes,
//! and what variables make it do.

mod faults;
mod library;
mod programs;
mod settings;
