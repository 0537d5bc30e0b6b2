# Every command brings .venv up to date first, from wheels, without a compiler. It needs make and Python
# 3.11 to 3.13 with its venv module (Debian, Ubuntu: python3-venv), or uv, which is used where it is.

SHELL := bash -o pipefail
VERSIONS := 3.11 3.12 3.13
PYTHON ?= $(firstword $(foreach name,python3 $(addprefix python,$(VERSIONS)),$(if $(filter $(VERSIONS),$(shell \
	$(name) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)),$(name))))
UV := $(shell command -v uv)
WHEELS ?=
RUNTIME := .venv/.runtime-installed
DEVELOPMENT := .venv/.development-installed
CHECKED := src tests benchmarks hatch_build.py
PIP = .venv/bin/python -m pip --disable-pip-version-check
PYTEST = PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2) \
	--dist loadfile --no-loadscope-reorder
LOCKED := --no-deps --only-binary :all: --require-hashes --requirement
INSTALL = $(if $(UV),$(UV) pip install --quiet --python .venv/bin/python,$(PIP) install --no-compile)
export UV_SYSTEM_CERTS := 1
ifneq ($(WHEELS),)
export PIP_NO_INDEX := 1
export PIP_FIND_LINKS := $(abspath $(WHEELS))
export UV_NO_INDEX := 1
export UV_FIND_LINKS := $(abspath $(WHEELS))
endif

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev devnet test test-all check lint format fuzz-rest reference bench clients dist man deb wheels lock clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  ARGS=... is passed on: make test ARGS='-k transfer', make devnet ARGS='--data-dir DIR'"
	@echo "  PYTHON=... names the Python, WHEELS=DIR a folder of wheels in place of the network"

setup: $(RUNTIME)  ## install the program as .venv/bin/soliton; EXTRAS=kafka,postgres for these too
	@$(if $(EXTRAS),sed 's/ \\$$//; /^ *--hash/d' requirements-dev.lock >.venv/constraints.txt && \
		$(INSTALL) --constraint .venv/constraints.txt --editable '.[$(EXTRAS)]')

setup-dev: $(DEVELOPMENT)  ## install the tools for tests and checks too, and all extras

devnet: $(RUNTIME)  ## start a private chain with funded accounts
	@exec .venv/bin/soliton devnet $(ARGS)

test: $(DEVELOPMENT) .cache/tests-compiled clients  ## run the tests
	$(PYTEST) $(ARGS)

test-all: export SOLITON_TESTS = long
test-all: test  ## run them at length, before a release and weekly

clients: | .venv/bin/.made  ## install the ecosystem's libraries, for the tests that use them as clients
	@tests/clients/install $(abspath .venv/bin/python)

check: lint .cache/tests-compiled  ## before a commit: format, lint, types and the fast tests
	$(PYTEST) -q -m "not slow" $(ARGS)

lint: $(DEVELOPMENT)  ## check formatting, lint rules and types, without changes
	.venv/bin/ruff format --check $(CHECKED)
	.venv/bin/ruff check $(CHECKED)
	.venv/bin/mypy

format: $(DEVELOPMENT)  ## rewrite the code in the project's format
	.venv/bin/ruff check --fix-only --quiet $(CHECKED)
	.venv/bin/ruff format $(CHECKED)

fuzz-rest: $(DEVELOPMENT) clients  ## send made-up requests to a devnet for long
	.venv/bin/python -m tests.fuzzing.rest $(ARGS)

reference: $(DEVELOPMENT)  ## build the reference of the library into build/reference
	.venv/bin/python -m pdoc soliton !soliton\. soliton.testing !soliton\.testing\. \
		soliton.testing.plugin --docformat restructuredtext --no-show-source --output-directory build/reference

bench: $(DEVELOPMENT)  ## run every benchmark, each beside the floor of this machine
	@for file in benchmarks/[!_]*.py; do echo "== $$file"; .venv/bin/python "$$file" $(ARGS) || exit 1; done

dist: | .venv/bin/.made  ## build, check and try the wheel and the archive of the source in dist
	.ci/dist $(abspath .venv/bin/python)

man: $(RUNTIME)  ## write the pages of the manual into build/man
	.venv/bin/python -m soliton.cli.man_pages build/man

deb: $(RUNTIME)  ## build a package for Debian and Ubuntu into dist; FOR=3.13 names the Python of the distribution
	deploy/debian/build $(abspath .venv/bin/python) $(FOR)

wheels: | .venv/bin/.made  ## fetch what an installation without a network needs into WHEELS
	@test -n "$(WHEELS)" || { echo "name the folder: make wheels WHEELS=DIR"; exit 1; }
	env -u PIP_NO_INDEX $(PIP) download --dest $(WHEELS) $(LOCKED) requirements-dev.lock
	env -u PIP_NO_INDEX $(PIP) download --dest $(WHEELS) --only-binary :all: pip editables \
		$$(sed -n 's/^requires = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '",')

lock:  ## make the lock files anew, with the newest versions that pyproject.toml allows
	.ci/lock

clean:  ## remove everything that these commands made
	rm -rf .venv .cache build dist tests/{clients,fuzzing/rest}/{node_modules,.venv,python/.venv} tests/*/*/jars tests/clients/java/grpc/jars
	rm -f src/soliton/*/proto/*_pb2.py src/soliton/*/proto/*_pb2.pyi

# A folder that an interrupted or failed command has left is begun anew.
.venv/bin/.made:
	$(if $(UV)$(PYTHON),,$(error Python 3.11, 3.12 or 3.13 is needed; name one: make PYTHON=/path/to/python3))
	@echo "making .venv with $(or $(PYTHON),uv) ..."
	@rm -rf .venv
	@$(if $(UV),$(UV) venv --quiet --seed --python $(or $(PYTHON),'>=3.11$(,)<3.14') .venv,$(PYTHON) -m venv .venv) || { rm -rf .venv; \
		echo "no environment was made: on Debian and Ubuntu, apt-get install python3-venv"; exit 1; }
	@touch $@

$(RUNTIME): requirements.lock pyproject.toml hatch_build.py $(wildcard src/soliton/*/proto/*.proto) | .venv/bin/.made
	@echo "installing what the program needs into .venv, from wheels ..."
	@$(call install,$(LOCKED) requirements.lock)
	@$(call install,--no-deps --editable .)
	@touch $@

$(DEVELOPMENT): requirements-dev.lock $(RUNTIME)
	@echo "installing tools for tests and checks into .venv, from wheels ..."
	@$(call install,$(LOCKED) requirements-dev.lock)
	@touch $@

# The processes of the first run would each compile all tests, at the same time.
.cache/tests-compiled: | $(DEVELOPMENT)
	@echo "compiling the tests ..."
	@mkdir -p .cache
	@printf '%s\n' tests/*.py tests/*/ | xargs -P $$(getconf _NPROCESSORS_ONLN) -n 12 env PYTHONDONTWRITEBYTECODE= \
		.venv/bin/python -m pytest --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

, := ,
# All cores compile what is installed: the first start would do it on one, and take seconds longer.
define install
$(INSTALL) $(1) | sed -n 's/^Collecting \([^ ]*\).*/  \1/p' || { \
	echo "the packages were not installed. Is there no network, or no index that answers? On a machine with one,"; \
	echo "make wheels WHEELS=DIR; copy DIR here, and add WHEELS=DIR to the command. Behind a mirror: PIP_INDEX_URL, UV_DEFAULT_INDEX"; exit 1; }; \
.venv/bin/python -m compileall -qq -j 0 -x '/(pip|pygments/(lexers|styles|formatters))/' .venv/lib src/soliton || true
endef
