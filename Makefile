# `make help` lists the targets. Each sets up what it needs: Debian packages (native/prerequisites.sh),
# the virtual environment .venv, the native extension, the jars. Stamps are in .make.

PYTHON      ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14,$(shell command -v $(name) >/dev/null 2>&1 && $(name) -c '' 2>/dev/null && echo $(name))) python3)
PYTEST_ARGS ?=
# The tests of one file run in the same process, the files in the order of tests/conftest.py.
# More than processors, because many of them wait for others. A process that ends in the middle of a
# test ends the run: pytest-xdist would wait for ever for one that replaces it.
TEST_PROCESSES ?= 3
PYTEST := -m pytest -n $(TEST_PROCESSES) --max-worker-restart 0 --dist loadfile --no-loadscope-reorder
DEMO_ARGS   ?=
BENCH_ARGS  ?=
# Releases of Zeebe whose journals tests read and write.
ZEEBE_RELEASES := 1.0.0 8.2.15 8.3.4
# Those of the wheels that `make wheel` builds: this machine's, or x86_64 and aarch64.
ARCHITECTURES ?= $(shell uname -m)
# Cargo's profile: release, or dev-release for quick builds (native/Cargo.toml).
PROFILE     ?= release

VENV   := .venv
PY     := $(VENV)/bin/python
STAMPS := .make
WHEEL_VENV := $(STAMPS)/wheel
WHEEL_PY   := $(WHEEL_VENV)/bin/python
JARS   := $(foreach name,jars bookkeeper-jars cassandra axe,$(STAMPS)/$(name)/.complete)
NATIVE := $(shell find native/src native/format/src -name '*.rs') native/Cargo.toml \
          native/build.rs native/format/Cargo.toml native/Cargo.lock \
          native/toolchain.cmake native/build_environment.py .cargo/config.toml

# rustup installs there, and a shell that was open before does not know it.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Spark's workers must be the same Python.
export PYSPARK_PYTHON := $(CURDIR)/$(PY)

# Debian's packages whose programs some tests run; without them these tests are skipped.
TEST_PACKAGES := chromium-driver prometheus

# The environment, the editable install and CMake's caches all have the path of the checkout in them.
BUILT_IN := $(shell sed -n 's|^command = .* -m venv [^/]*\(/.*\)/$(VENV)$$|\1|p' $(VENV)/pyvenv.cfg 2>/dev/null)
ifneq ($(filter-out help clean,$(MAKECMDGOALS)),)
ifneq ($(or $(BUILT_IN),$(CURDIR)),$(CURDIR))
$(error aerotape: this checkout was built in $(BUILT_IN) and then copied or moved, and what is built has that path: run `make clean` here, and then this again)
endif
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup jars demo test test-fast bench check docs format dist wheel release clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F '|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: $(STAMPS)/installed $(JARS) ## Set everything up: packages, .venv, native extension, jars

jars: $(JARS) ## Fetch the Java programs that tests compare with from Maven Central

demo: $(STAMPS)/installed ## Record, list, replay, crash, repair and take to Parquet (DEMO_ARGS=…)
	@$(PY) tests/demo/demo.py $(DEMO_ARGS)

test: setup $(STAMPS)/test-packages ## Run all tests, those of the native crate first (PYTEST_ARGS=…)
	@echo "aerotape: testing the native crate"
	@eval "$$($(PY) native/build_environment.py)" && cd native && cargo test --quiet --profile $(PROFILE) --workspace --no-default-features --lib
	@$(PY) $(PYTEST) $(PYTEST_ARGS)

test-fast: $(STAMPS)/installed ## Run the tests that need neither a JVM nor Spark and are not slow (PYTEST_ARGS=…)
	@$(PY) $(PYTEST) -m "not jvm and not spark and not slow and not crash" $(PYTEST_ARGS)

bench: setup ## Measure against the Java archive (BENCH=recording, control, listing, scan, parquet, tools, startup, durability, replaying, latency, journal, entities, web, growth or limits; BENCH_ARGS=…)
	@$(PY) bench/$(or $(BENCH),recording).py $(BENCH_ARGS)

check: $(STAMPS)/installed ## Lint and type-check Python and Rust
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy
	eval "$$($(PY) native/build_environment.py)" && cd native && cargo fmt --all --check && cargo clippy --profile $(PROFILE) --workspace --all-targets -- -D warnings

docs: $(STAMPS)/installed ## Build the site of the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build

format: $(STAMPS)/installed ## Sort imports and format the Rust sources
	$(VENV)/bin/ruff check --select I --fix
	cd native && cargo fmt --all

dist: $(STAMPS)/installed ## Build the sdist and the wheel into dist/
	@rm -rf build/lib.* build/bdist.*
	$(PY) -m build --no-isolation --sdist .
	$(PY) -m build --no-isolation --wheel .

# What is in build/lib.* goes into the wheel, also if its source has gone since.
# Zig's linker has the symbols of each release of glibc, and targets of other machines.
wheel: $(STAMPS)/wheel-environment ## Build a wheel for Linux with glibc 2.28 or newer into dist/ (ARCHITECTURES=…)
	@rm -rf dist/*-manylinux_*.whl build/lib.* build/bdist.*
	@echo "aerotape: building the wheel (some minutes)"
	@for architecture in $(ARCHITECTURES); do \
		{ ! command -v rustup >/dev/null || rustup --quiet target add $$architecture-unknown-linux-gnu; } && \
		PATH="$(CURDIR)/$(WHEEL_VENV)/bin:$$PATH" CARGO=cargo-zigbuild CARGO_BUILD_TARGET=$$architecture-unknown-linux-gnu.2.28 \
		$(WHEEL_PY) -m build --no-isolation --wheel . -C--build-option=--plat-name -C--build-option=manylinux_2_28_$$architecture >$(STAMPS)/wheel.log 2>&1 || \
		{ tail -n 30 $(STAMPS)/wheel.log; echo "aerotape: all of it is in $(STAMPS)/wheel.log"; exit 1; }; \
	done
	@for architecture in $(ARCHITECTURES); do \
		$(WHEEL_PY) -m auditwheel show dist/*-manylinux_2_28_$$architecture.whl >$(STAMPS)/auditwheel.log 2>&1 && \
		tr '\n' ' ' <$(STAMPS)/auditwheel.log | grep -q "following platform tag: *\"manylinux_2_28_$$architecture\"" || \
		{ cat $(STAMPS)/auditwheel.log; exit 1; }; \
	done
	@$(WHEEL_PY) tests/packaging/wheels.py dist/*-manylinux_2_28_*.whl
	@ls dist/*-manylinux_2_28_*.whl

release: ARCHITECTURES := x86_64 aarch64
release: wheel ## Build what is released, and check it against CHANGELOG.md and the tag of this commit
	$(WHEEL_PY) -m build --no-isolation --sdist .
	$(WHEEL_PY) tests/packaging/release.py dist

clean: ## Remove all that was built or set up
	rm -rf $(VENV) $(STAMPS) build dist native/target aerotape/*.so src/aerotape.egg-info \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log

$(STAMPS)/prerequisites: native/prerequisites.sh
	@native/prerequisites.sh $(PYTHON)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test-packages: $(STAMPS)/prerequisites
	@echo "aerotape: installing Debian packages for tests: $(TEST_PACKAGES)"
	@{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(TEST_PACKAGES); } >$@.log 2>&1 || \
		echo "aerotape: they are not installed ($@.log says why), and tests that need them are skipped"
	@touch $@

# Build requirements go into the environment itself: without pip's build isolation Cargo finds
# them at the same place every time and has nothing to build again.
$(STAMPS)/environment: $(STAMPS)/prerequisites pyproject.toml
	@echo "aerotape: making the Python environment $(VENV)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(STAMPS)/build-requirements.txt
	@$(PY) -m pip install --quiet --upgrade -r $(STAMPS)/build-requirements.txt
	@touch $@

$(STAMPS)/installed: $(STAMPS)/environment setup.py $(NATIVE)
	@echo "aerotape: building the native extension (the first time takes some minutes) and installing"
	@SETUPTOOLS_RUST_CARGO_PROFILE=$(PROFILE) $(PY) -m pip install --quiet --no-build-isolation --editable '.[spark,plot,dev]'
	@$(PY) -m compileall -q aerotape archive catalog client codecs entity replay spark tools
	@touch $@

# Has nothing but what builds a wheel, so that this needs neither root nor a JDK.
$(STAMPS)/wheel-environment: native/prerequisites.sh pyproject.toml
	@native/prerequisites.sh $(PYTHON) wheel
	@echo "aerotape: making the Python environment $(WHEEL_VENV)"
	@mkdir -p $(STAMPS)
	@test -x $(WHEEL_PY) || $(PYTHON) -m venv $(WHEEL_VENV)
	@$(WHEEL_PY) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb")); print(*project["build-system"]["requires"], *project["project"]["optional-dependencies"]["wheel"], sep="\n")' > $@.txt
	@$(WHEEL_PY) -m pip install --quiet --requirement $@.txt
	@touch $@

$(STAMPS)/jars/.complete: tests/support/jvm/pom.xml tests/support/jvm/raft/pom.xml | $(STAMPS)/prerequisites
	@echo "aerotape: fetching the jars"
	@mvn --quiet --batch-mode -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@for release in $(ZEEBE_RELEASES); do \
		mvn --quiet --batch-mode -f tests/support/jvm/raft/pom.xml dependency:copy-dependencies -Dzeebe.version=$$release -DoutputDirectory=$(CURDIR)/$(@D)/zeebe-$$release || exit 1; \
	done
	@touch $@

# One after the other, also for `make -j`: two of Maven do not share its local repository well.
$(STAMPS)/bookkeeper-jars/.complete: tests/support/jvm/bookkeeper/pom.xml | $(STAMPS)/jars/.complete
	@echo "aerotape: fetching BookKeeper's jars"
	@mvn --quiet --batch-mode -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

$(STAMPS)/axe/.complete: tests/support/accessibility/pom.xml | $(STAMPS)/bookkeeper-jars/.complete
	@echo "aerotape: fetching axe-core, for tests of the web service's pages"
	@mvn --quiet --batch-mode -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

$(STAMPS)/cassandra/.complete: tests/support/stores/pom.xml | $(STAMPS)/axe/.complete
	@echo "aerotape: fetching Cassandra, for tests of entity stores"
	@mvn --quiet --batch-mode -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@
