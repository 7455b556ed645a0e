"""Phase 2 of a key in snarkjs's format: contributions, beacons, and what a user can check of a key and of powers of tau."""
