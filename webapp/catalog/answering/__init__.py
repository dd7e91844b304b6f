"""Where answers come from: one protocol over endpoints and checkpoints."""
