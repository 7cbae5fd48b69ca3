"""Soak: proofs that take too long for `make test`, each a named part with a seed. See README.md beside this file."""
