"""What the README claims, measured.

A package with this file, not a bare folder: Opacus (extra `dp`) installs a package of this name, and it would win.
"""
