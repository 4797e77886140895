//! A stand-in for NVIDIA's driver library, for tests on machines without a GPU.
