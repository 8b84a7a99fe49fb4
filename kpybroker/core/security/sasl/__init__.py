"""The server's side of SASL mechanisms. `mechanism` is the interface; one module for each mechanism implements it."""
