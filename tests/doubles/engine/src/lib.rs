//! What the stand-ins for vendors' drivers have in common: virtual devices, their memory, streams, events and faults.
