"""Filecoin's SnapDeals outside the circuit: encoding of data into a sealed sector, challenges, vanilla proofs, proving."""
