"""Reads map files: those of the stand-in, and the real maps of SMAC and SMACv2."""
