# SPDX-License-Identifier: MIT
"""The Python behind scripts/skbench: standard library only."""
