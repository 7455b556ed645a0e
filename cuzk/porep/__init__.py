"""Filecoin's Proof of Replication outside the circuit: ids, graph, challenges, sealing of small sectors."""
