//! Runs PTX on the CPU, as far as the compilers of this project produce it.
