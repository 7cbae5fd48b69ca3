"""Under fire: real desks, in processes of their own, killed, frozen and doubled, and then called to account.

`points` names where a desk can be made to die; `desk` is the program that dies, doing what `worlds` says; `recorder` is
the outside world with books of its own; `house` starts and kills; `accounts` compares the ledger with those books.
`deaths` are the ways to die, `storms` many of them by chance, `figures` what they came to. `seeded` are bugs that the
accounts have to find. `kills` and `proof` are parts of `make soak`.
"""
