"""parse -> decide -> act: events of the input bucket become arrivals that one manifest owns."""
