# make lab    set up .venv and open JupyterLab at the first lesson
# make demo   train the embedded model and check a sample submission, without a browser
# make test   set up .venv and run the quick tests, in minutes; with ARGS, exactly what it names
# make test-all   run every test that a change has to pass
# make test-weekly   run the others, half an hour and more: claims of lessons, lessons on a pretended GPU
# make test-gpu   on a machine with a GPU: the tests of tests/gpu/on_device on it
# make lint   style, format and types
# make site   build the lessons, the guides and the reference as web pages, in build/site/html
# make attacks   what each attack on the grader deserves and gets; ARGS=patching: those of one kind
# make test-perturbed   run what trains or draws again, with noise in the weights and other seeds
#
# PYTHON picks the interpreter, VENV the environment, PIP_ARGS goes to every pip install. WORKERS is
# how many processes test (0 for this one alone); two keep two cores busy, with the processes that
# tests start. ARGS goes to pytest, PERTURBATIONS are the seeds.
# tests/tiers.py says which tests are quick, and holds them to it. A file's tests stay in one process,
# which sets up once what they share.

PYTHON   ?= python3
VENV     ?= .venv
PIP_ARGS ?=
WORKERS  ?= 2
PYTEST   := $(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PERTURBATIONS ?= 1 2 3 4 5
TRAIN_OR_DRAW := $(addprefix tests/,algorithms evaluation lessons policy training trl_engine)
BIN      := $(VENV)/bin
PIP      := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock $(PIP_ARGS)

.PHONY: lab demo test test-all test-weekly test-gpu test-perturbed lint build bench attacks site clean

lab: $(VENV)/.course
	@$(BIN)/rlcourse lab

demo: $(VENV)/.course
	@$(BIN)/rlcourse demo

test: $(VENV)/.test
	@$(PYTEST) $(or $(ARGS),-m "not slow" --hold-tiers)

test-all: $(VENV)/.test
	@$(PYTEST) -rs --hold-tiers $(ARGS)

test-weekly: $(VENV)/.test
	@$(PYTEST) -rs --weekly -m weekly $(ARGS)

test-gpu: $(VENV)/.test
	@RLCOURSE_REAL_GPU=1 PYTHONPATH=tests/gpu:tests:tests/policy $(BIN)/python -m pytest -p no:xdist -rs \
	    $(or $(ARGS),tests/gpu/on_device)

test-perturbed: $(VENV)/.test
	@failed=; for seed in $(PERTURBATIONS); do \
	    echo "perturbed by $$seed"; \
	    $(PYTEST) --perturbed=$$seed $(or $(ARGS),$(TRAIN_OR_DRAW)) || failed="$$failed $$seed"; \
	done; test -z "$$failed" || { echo "failed when perturbed by$$failed"; exit 1; }

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

build: $(VENV)/.course
	@$(BIN)/rlcourse build --execute

site: $(VENV)/.site
	@rm -rf build/site
	@$(BIN)/python course/site/pages.py build/site/pages build/site/extra
	@$(BIN)/python -m sphinx -q -W --keep-going -c course/site build/site/pages build/site/html
	@echo "open build/site/html/index.html"

bench: $(VENV)/.test
	@for bench in tests/benchmarks/bench_*.py; do $(BIN)/python $$bench || exit 1; done

attacks: $(VENV)/.test
	@$(BIN)/python tests/benchmarks/attack_table.py $(ARGS)

clean:
	rm -rf $(VENV)

# A stamp is written only after its install succeeded, so an interrupted one is repeated.
$(VENV)/.course: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("rlcourse needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": try make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV) || { echo "no virtual environment could be made; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "installing rlcourse into $(VENV) (a few minutes the first time)"
	@$(PIP) -e ".[lab,grade]"
	@touch $@

$(VENV)/.site: $(VENV)/.course
	@$(PIP) -e ".[site]"
	@touch $@

$(VENV)/.test: $(VENV)/.course
	@$(PIP) -e ".[test]"
	@touch $@
