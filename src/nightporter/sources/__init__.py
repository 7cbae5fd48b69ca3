"""sources: ways in which something arrives. One module per kind: each makes firings and hands them to admission."""
