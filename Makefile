# Every target works alone from a fresh clone: the virtual environment is made and kept up to date by stamps.
PYTHON ?= python3
VENV := .venv
MINUTES ?= 30
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
CLEAN := build/clean-venv
HF := build/hf-venv
HF_TESTS := $(foreach family,longformer led big_bird,tests/models/$(family)/test_modeling_$(family).py)
HF_CHOOSING := $(foreach family,modernbert eurobert gemma3 mistral llama,tests/models/$(family)/test_modeling_$(family).py)
# Without pictures, whose masks are refused; and but for what asks for torch's attention itself, or for one graph.
HF_TEXT := -k 'not Vision2Text'
HF_BUT := test_sdpa_can_dispatch_non_composite_models test_generate_compile_model_forward_fullgraph
DRAWN := longformer 'Window(3, dilation=2) & Causal()' 'BlockWindow(2) | GlobalBlocks(2) | RandomBlocks(2, 2, "uniform")'
MODEL_TESTS := tests/unit/nn tests/unit/families tests/unit/tasks tests/unit/test_reader.py tests/properties/test_reader_independence.py
TOOL_TESTS := tests/unit/training/test_log.py $(foreach name,trainer peft_adapters peft export st_tools st_module hf_interface,tests/parity/test_$(name).py)
NATIVE := CMakeLists.txt $(wildcard csrc/*.* csrc/*/*.*)

# Of `make fuzz`, for each kind of file; and of `make sanitize`.
FUZZ_MINUTES := 5
CASES := 5000

# Two at a time; threads that wait must not spin, lest they take the other's core.
TESTS := OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -q --numprocesses 2 --dist worksteal

# Kept between builds, so that only what changed is compiled.
INCREMENTAL := --no-build-isolation --config-settings=build-dir=build/native

# The second name is what newer versions of pip read in isolated build environments.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help tools-test demo demo-picture demo-engine pictures docs test slow stress soak fuzz lint format bench wheel native-test sanitize hf-suite clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/installed ## fetch the model, read the documents of examples/ whole, answer questions about them
	$(BIN)/python examples/demo.py

demo-picture: $(VENV)/installed ## run the demo afresh, then draw its picture and show its output in the README
	rm -rf build/demo
	$(BIN)/python docs/pictures/demo.py

demo-engine: $(VENV)/installed ## examine this machine, draw the patterns, time attention and a small model
	$(BIN)/longspan doctor
	$(BIN)/longspan draw $(DRAWN) --length 28 --marked 0
	$(BIN)/longspan draw --svg --out build/pictures
	$(BIN)/longspan bench attention --short
	$(BIN)/longspan bench model --short

pictures: $(VENV)/installed ## draw the patterns and models of the documentation afresh
	$(BIN)/longspan draw --svg --out docs/pictures
	$(BIN)/longspan draw longformer-base bigbird-base poolingformer-base etc-base --svg --out docs/pictures
	$(BIN)/longspan draw default --length 1024 --svg --out docs/pictures/default.svg

docs: $(VENV)/installed ## build the documentation as a site in build/docs; what is undocumented or leads nowhere is an error
	$(BIN)/python -m sphinx -q -E -W --keep-going -c docs/_site -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html."

test: $(VENV)/installed ## run the default test suite, then the models without the native kernel
	$(TESTS)
	$(TESTS) --portable $(MODEL_TESTS)

slow: $(VENV)/installed ## run the tests that take long
	$(BIN)/python -m pytest -q -m slow

stress: $(VENV)/installed ## three writers, five readers, rebuilds and kills on one index for a minute
	$(BIN)/python -m pytest -q -s -m slow tests/unit/search/test_stress.py

soak: $(VENV)/installed ## half an hour of updates, kills and searches, then of runs killed and resumed; MINUTES=how long
	$(BIN)/python -m benchmarks.soak search --minutes $(MINUTES)
	$(BIN)/python -m benchmarks.soak training --minutes $(MINUTES) --kills 200

fuzz: $(VENV)/installed ## damage files of every kind, FUZZ_MINUTES each, and watch; what fails is kept in build/fuzz
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --minutes $(FUZZ_MINUTES) $(if $(SEED),--seed $(SEED))

lint: $(VENV)/installed ## check style, types and architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/architecture

format: $(VENV)/installed ## rewrite the code in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed ## run every benchmark of attention and models (hours)
	$(BIN)/longspan bench attention
	$(BIN)/longspan bench model

wheel: $(VENV)/tools ## build a wheel and try it in a clean environment without a compiler
	rm -rf dist $(CLEAN)
	$(PIP) wheel . --no-deps $(INCREMENTAL) --wheel-dir dist
	$(PYTHON) -m venv $(CLEAN)
	$(CLEAN)/bin/python -m pip install --quiet torch==2.13.0 dist/longspan-*.whl
	cp .ci/try_wheel.py $(CLEAN)
	cd $(CLEAN) && env PATH="$$PWD/bin" bin/python -W error try_wheel.py
	cd $(CLEAN) && env PATH="$$PWD/bin" bin/longspan doctor

tools-test: $(VENV)/tools-installed ## run the tests inside other libraries: peft, ONNX, BERTopic, LangChain, MTEB and others
	$(TESTS) $(TOOL_TESTS)

native-test: $(VENV)/installed ## run the native core's own tests
	$(BIN)/cmake --build build/native --target longspan_tests
	build/native/longspan_tests 500

sanitize: $(VENV)/tools ## run the native core's own tests, longer, under address and undefined-behavior sanitizers
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DLONGSPAN_SANITIZE=ON
	$(BIN)/cmake --build build/sanitize --target longspan_tests
	build/sanitize/longspan_tests $(CASES)

hf-suite: $(HF)/installed ## run transformers' own tests of its long models with our attention; TRANSFORMERS=its checkout
	@test -d "$(TRANSFORMERS)/tests" || { echo "Give TRANSFORMERS=the folder of a checkout of transformers."; exit 2; }
	@# With what the checkout itself asks for: our constraints are those of another version.
	PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT= $(HF)/bin/python -m pip install --quiet $(TRANSFORMERS)
	cd $(TRANSFORMERS) && HF_HUB_OFFLINE=1 $(CURDIR)/$(HF)/bin/python -m pytest -q $(HF_TESTS) \
		-p no:cacheprovider --junitxml $(CURDIR)/build/hf-plain.xml || true
	cd $(TRANSFORMERS) && HF_HUB_OFFLINE=1 PYTHONPATH=$(CURDIR)/tests $(CURDIR)/$(HF)/bin/python -m pytest -q $(HF_TESTS) \
		-p no:cacheprovider -p hf_suite.plugin --junitxml $(CURDIR)/build/hf-swapped.xml || true
	$(BIN)/python tests/hf_suite/compare.py build/hf-plain.xml build/hf-swapped.xml
	cd $(TRANSFORMERS) && HF_HUB_OFFLINE=1 $(CURDIR)/$(HF)/bin/python -m pytest -q $(HF_CHOOSING) $(HF_TEXT) \
		-p no:cacheprovider --junitxml $(CURDIR)/build/hf-sdpa.xml || true
	cd $(TRANSFORMERS) && HF_HUB_OFFLINE=1 PYTHONPATH=$(CURDIR)/tests $(CURDIR)/$(HF)/bin/python -m pytest -q \
		$(HF_CHOOSING) $(HF_TEXT) -p no:cacheprovider -p hf_suite.interface --junitxml $(CURDIR)/build/hf-chosen.xml || true
	$(BIN)/python tests/hf_suite/compare.py build/hf-sdpa.xml build/hf-chosen.xml $(HF_BUT)

clean: ## remove everything that make has made
	rm -rf build dist $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/tools: constraints.txt
	@echo "Making $(VENV): this takes some minutes, once."
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet torch==2.13.0
	$(PIP) install --quiet scikit-build-core nanobind cmake ninja
	touch $@

# Tests of transformers need more than ours; the checkout's own sources come first on their path.
$(HF)/installed: $(VENV)/installed
	$(PYTHON) -m venv $(HF)
	$(HF)/bin/python -m pip install --quiet torch==2.13.0
	$(HF)/bin/python -m pip install --quiet '.[hf]' accelerate datasets httpx parameterized psutil requests rjieba pytest pytest-timeout pytest-xdist
	touch $@

$(VENV)/tools-installed: $(VENV)/installed
	$(PIP) install --quiet $(INCREMENTAL) --editable '.[dev,tools]'
	touch $@

$(VENV)/installed: $(VENV)/tools pyproject.toml $(NATIVE)
	$(PIP) install --quiet $(INCREMENTAL) --editable '.[dev]'
	@# A compiler that failed must not be remembered, or installing one that works would change nothing.
	@$(BIN)/python -c "import longspan._native" 2>/dev/null || { rm -rf build/native; \
		echo "The native core was not built: see longspan doctor."; }
	touch $@
