"""Event sourcing: an account ledger whose balances are rebuilt from its entries, and checked."""
