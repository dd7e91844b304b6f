"""The training engine: no Django, no database. Only `jobs/` imports torch.

One run is one directory: `config.json` and snapshots go in, metrics, events, samples, checkpoints
and at last a manifest come out. `python -m training.engine run DIR` executes it.
"""
