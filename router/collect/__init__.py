"""Files of the batch lane are collected by hour, and divided into manifests when it is over or a plan begins."""
