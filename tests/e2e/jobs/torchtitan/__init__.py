"""Stands in for torchtitan 0.3.0 where there is no GPU; see train.py."""
