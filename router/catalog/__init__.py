"""Creates and extends the Glue tables of datasets; never removes anything from them."""
