"""The reference prover (the Filecoin daemon over supraseal C2) as pipelines: its phases and its stand-alone form.

    phases.py     what each phase set, as values of the policy
    buffers.py    what it allocates
    supraseal.py  the stand-alone prover, without synthesis

History that predictions are held against; cuzk's own executor stands beside this folder.
"""
