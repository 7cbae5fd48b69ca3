"""surfaces: ways in for people and programs. Each parses, calls operations or the ledger, and renders."""
