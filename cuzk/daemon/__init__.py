"""The proving daemon that Filecoin's Curio uses, as others run it: its configuration file, read and written.

toml.py        cuzk.toml -> settings, with what the daemon really does with each key
scenario.py    settings on a machine -> a scenario
emit.py        a policy -> cuzk.toml
"""
