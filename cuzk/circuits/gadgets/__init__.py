"""The gadgets of which the PoRep circuit is built: the order of their variables and rows is the circuit's identity."""
