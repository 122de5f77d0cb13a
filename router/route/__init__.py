"""Turns events of the input bucket into arrivals, each with one owner: parse, decide the lane, take ownership."""
