"""The store is ill: torn by a power loss, full, read-only, held by somebody else, tampered with, or hung up on.

`lossy` is a disk whose unsynced writes are lost when the power goes; `ward` keeps a desk on it, in its own process;
`hostile` writes into a ledger what no ledger should hold; `cutter` stands between a desk and its server, and cuts.
`soak` goes on for as long as you like.
"""
