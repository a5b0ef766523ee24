# make train   sets up, then trains a web agent with TTI
# make test    sets up, then linters, types and tests
# make soak    sets up, then the tests that are slow by their nature: real servers, deaths, a cluster, many pages
# make claim   sets up, then checks the claim of TTI (hours)
# make docs    sets up, then writes the documentation to site/VERSION/, beside that of other versions
# make gpu     on a machine with a GPU: the tests that need one, then longstride bench gpu (TORCH_BUILD=cu130)
# make parity  sets up, then compares with other implementations of the same papers
# make curves  sets that up, then learning curves beside Stable-Baselines3 and d3rlpy (hours; minutes with SHORT=--short)
# make setup   only sets up: .venv with pinned packages and the CPU build of torch; uv is used where it is there
#
# PYTHON=python3.12 names the interpreter. TORCH_BUILD=cu130 takes another build of torch, TORCH_INDEX=... another index for it.

PYTHON ?= python3
TORCH_BUILD ?= cpu
TORCH_INDEX ?= https://download.pytorch.org/whl/$(TORCH_BUILD)
TORCH := torch==$(shell sed -n 's/^torch==//p' constraints.txt)
BIN := .venv/bin
READY := .venv/.ready
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/longstride/__init__.py)

.PHONY: setup train test soak claim docs gpu parity curves
setup: $(READY)

train: setup
	$(BIN)/longstride train tti

claim: setup
	$(BIN)/longstride claim tti

gpu: setup
	$(BIN)/pytest -q -rs tests/run/test_gpu.py tests/engines/test_graphs.py tests/learner/test_gpu.py
	$(BIN)/longstride bench gpu

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --site-dir site/$(VERSION)

test: setup
	$(BIN)/ruff check src tests docs/generate.py
	$(BIN)/ruff format --check src tests docs/generate.py
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(TESTS) -m 'not slow'

soak: setup
	$(TESTS) -m slow

# compiled files are kept whatever the environment says: else each worker and each process of a test compiles all of them
TESTS := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

D3RLPY_IMPORTS := dataclasses-json gym h5py scikit-learn structlog

parity: .parity/.ready
	.parity/bin/python -m pytest -rs tests/parity

curves: .parity/.ready
	.parity/bin/longstride bench curves --peer .parity/bin/python $(SHORT)

# An environment on top of .venv, of older pandas: arch, which rliable imports, does not work with pandas 3. Some come without
# what they ask for, as they compare without: d3rlpy asks for an older gymnasium, Design-Bench for TensorFlow and DeepChem.
.parity/.ready: $(READY)
	$(BIN)/python -m venv .parity
	$(BIN)/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
	  > "$$(.parity/bin/python -c 'import site; print(site.getsitepackages()[0])')/beneath.pth"
	sed 's/^pandas==.*/pandas==2.3.3/' constraints.txt > .parity/constraints.txt
	add=".parity/bin/python -m pip install --quiet --disable-pip-version-check -c .parity/constraints.txt"; \
	$$add -e '.[parity,mujoco]' $(D3RLPY_IMPORTS) stable-baselines3 && $$add --no-deps d3rlpy design-bench
	touch $@

# uv does not read pip's settings: what pip is told of indexes, wheels and certificates, `tell` tells uv.
# torch comes from what is known already (a mirror or a wheel of one's own), else from torch's index, else as the plain
# build, which is the CPU's on macOS, where no other exists.
$(READY): pyproject.toml constraints.txt
	@set -eu; begin=$$(date +%s); \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; name one by make PYTHON=python3.12" >&2; exit 2; }; \
	tell() { \
	  value=$$(printenv $$2 || $(PYTHON) -m pip config get global.$$3 2>/dev/null || true); \
	  if [ -n "$$value" ] && ! printenv $$1 >/dev/null; then export "$$1=$$(echo $$value | tr ' ' "$$4")"; fi; \
	}; \
	if command -v uv >/dev/null; then \
	  tell UV_FIND_LINKS PIP_FIND_LINKS find-links ,; \
	  tell UV_DEFAULT_INDEX PIP_INDEX_URL index-url ' '; \
	  tell UV_INDEX PIP_EXTRA_INDEX_URL extra-index-url ' '; \
	  tell SSL_CERT_FILE PIP_CERT cert ' '; \
	  test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) .venv; \
	  add="uv pip install --quiet --python $(BIN)/python --index-strategy unsafe-best-match -c constraints.txt"; \
	else \
	  test -x $(BIN)/pip || $(PYTHON) -m venv .venv; \
	  add="$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt"; \
	fi; \
	echo "installing $(TORCH) ($(TORCH_BUILD))"; \
	$$add "$(TORCH)+$(TORCH_BUILD)" >/dev/null 2>&1 || \
	$$add "$(TORCH)+$(TORCH_BUILD)" --extra-index-url $(TORCH_INDEX) >/dev/null 2>&1 || \
	  { echo "no such build in $(TORCH_INDEX); taking the plain one"; $$add "$(TORCH)"; }; \
	echo "installing longstride and its tools"; \
	$$add -e '.[dev]'; \
	touch $(READY); \
	echo "set up in $$(($$(date +%s) - begin)) seconds"
