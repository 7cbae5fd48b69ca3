"""Two of everything: several desks and workers on one store, whose members die, hang, are cut off, or tell the time
wrong. Read `night`, then the tests; `partition` is for machines with network namespaces."""
