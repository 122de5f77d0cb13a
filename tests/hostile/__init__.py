"""Files that a hostile uploader could send, converted under limits of memory and size: ``make hostile``."""
