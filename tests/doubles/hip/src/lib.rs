//! A stand-in for AMD's driver library, for tests on machines without a GPU.
