"""What the batch lane receives is collected by hour, and divided into manifests when the hour is over or a plan begins.

============  ==========================================================================================
``divide``    a closed collection becomes manifests, by one commit document that any process carries out
``cut``       the files of its parts, cut into manifests; pure
============  ==========================================================================================
"""
