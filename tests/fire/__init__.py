"""Under fire: real desks, in processes of their own, killed, frozen and doubled, and then called to account.

`points` names where a desk can be made to die; `desk` is the program that dies; `recorder` is the outside world with
books of its own; `house` starts and kills; `accounts` compares the ledger with those books. `kills` is the
part of `make soak` that goes on for long.
"""
