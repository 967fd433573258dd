"""Reads map files: the stand-in's own, and the real ones of SMAC and SMACv2."""
