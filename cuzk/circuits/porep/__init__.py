"""The circuit of Filecoin's Proof of Replication (stacked depth-robust graph), as its proving keys fix it."""
