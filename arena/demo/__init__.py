"""Demo data of our own making: people, personas, topics, six styles of answering, two rounds."""
