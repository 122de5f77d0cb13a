"""The quarantine as a place to work: find, show, export, and give repaired lines back."""
