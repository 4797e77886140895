//! The pulse of a seismic source.

use std::f64::consts::PI;

/// Ricker's wavelet with this peak frequency, delayed so that it begins near zero at time 0.
pub(crate) fn ricker(frequency: f64, time: f64) -> f64 {
    let phase = PI * (frequency * time - 1.2);
    (1.0 - 2.0 * phase * phase) * (-phase * phase).exp()
}
