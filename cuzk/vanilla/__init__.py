"""Vanilla proofs of PoSt and SnapDeals: bincode items read and written, their Merkle paths checked and opened in columns."""
