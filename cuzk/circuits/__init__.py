"""Circuits as code: gadgets, the PoRep circuit of Filecoin, benchmark circuits.

field.py, hashes.py     the scalar field; SHA-256 and Poseidon over many inputs
algebra.py              values: integers for one instance, columns for many
emitter.py              gadgets become rows, values, or both; often used ones are emitted once and stamped
gadgets/                bit, xor, and, ch, maj, 32-bit words, SHA-256, numbers, insertion, Poseidon
porep/                  label, column, inclusion, one partition; the registered sectors
merkle.py               paths to a root, their position public or from bits
template.py             a prefix and shifted copies instead of expanded matrices
witness.py              bits kept as bits
sizes.py                key, matrices, witness and memory that follow from a template
builtin/                benchmark circuits of any size
"""
