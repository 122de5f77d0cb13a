"""Events of the input bucket become arrivals, each owned by one manifest: parse, decide the lane, take ownership."""
