"""The local cloud: the AWS services that the product uses, on this machine. See README.md in this folder."""
