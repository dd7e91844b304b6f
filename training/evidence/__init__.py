"""What blind rounds say about a trained model, and what its reward models foresaw. Pure."""
