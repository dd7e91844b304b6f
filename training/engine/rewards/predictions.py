"""Where a run of kind predict writes, so that the site can read it without torch."""

FILE, REPORT = "predictions.jsonl", "predictions.json"
