"""A stand-in for torchtitan 0.3.0 on machines without a GPU; see train.py."""
