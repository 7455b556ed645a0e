"""Filecoin's Proof of Spacetime outside the circuit: challenges, statements, vanilla proofs, proving."""
