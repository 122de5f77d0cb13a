"""The demo: both lanes on this machine, from upload to proof."""
