# Lockkeeper. `make help` lists the targets.

# How many times longer than in `make test` the randomized tests run.
TORTURE ?= 20

.DEFAULT_GOAL := help
.PHONY: help test test-agents agents-latest test-ui test-machines lint trace mutate torture soak bench build man pictures release test-release module test-module clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## run all checks and tests, with a temporary PostgreSQL
	@scripts/test

# Without the race detector: under it every process takes a second to end, and the sandbox
# starts several for each call.
test-agents: ## test with the real Claude Code, Codex, Gemini CLI and opencode, which it installs
	scripts/agents run -- go test -tags agents -count=1 -timeout 60m -parallel 4 ./test/agents
	scripts/agents run -- go test -tags agents -count=1 -timeout 60m -run TestRealPrograms ./internal/agent

agents-latest: ## pin the newest Claude Code, Codex, Gemini CLI and opencode, and run all of their tests
	scripts/agents latest
	@$(MAKE) --no-print-directory test-agents

# The tests leave pictures of the pages in UI_PICTURES.
UI_PICTURES ?= $(or $(TMPDIR),/tmp)/lockkeeper-pictures

test-ui: ## test the dashboard in a real browser, which it installs
	mkdir -p $(UI_PICTURES)
	scripts/browser run -- go test -tags ui -count=1 -timeout 60m -artifacts -outputdir $(UI_PICTURES) ./test/ui

# LOCKKEEPER_TORTURE=4 runs them with more leases, restarts and landings. Most of the time they wait.
test-machines: ## test several machines with a broken network between them, as root
	scripts/machines run -- go test -tags machines -count=1 -timeout 60m -parallel 6 ./test/machines

lint: ## run go vet and staticcheck only
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...

trace: ## renew the list of tests in docs/requirements.md
	go test -count=1 -run TestRequirementsAreTraced . -update

# RUN selects mutants by requirement, such as RUN='^SW-1[46]'. A mutant takes 5 to 30 seconds.
RUN ?= .
mutate: ## remove the implementation of each requirement in testdata/mutants.txt, and see its test fail
	nice go test -tags mutate -count=1 -timeout 3h -v -run 'TestMutants$$/$(RUN)' .

# Every test runs. Randomized tests multiply their iterations by LOCKKEEPER_TORTURE.
torture: ## run the randomized tests TORTURE times longer
	LOCKKEEPER_TORTURE=$(TORTURE) scripts/postgres run -- go test -race -count=1 -timeout 60m ./...

# It stops after the first round with a failure, and prints the seed of the order.
soak: ## run the tests ROUNDS=20 times in random order, next to BUSY=4 busy loops; PKGS selects packages
	@ROUNDS=$(ROUNDS) BUSY=$(BUSY) PKGS="$(PKGS)" scripts/soak

bench: ## measure against peers; BENCH=-write renews docs/benchmarks.md
	cd bench && go vet ./...
	cd bench && ../scripts/postgres run -- go run . $(BENCH)

# Where the programs go.
BIN ?= bin

# Without inlining in these packages the main program is 2 MB smaller and the hook 0.4 MB.
MODULE_HERE = $(shell go list -m)
not_inlined = $(foreach module,mvdan.cc github.com/goccy $(1),-gcflags=$(module)/...=-l)
SMALL = $(call not_inlined,$(MODULE_HERE)/internal github.com/modelcontextprotocol github.com/yuin github.com/jackc github.com/charmbracelet charm.land)
SMALL_HOOK = $(call not_inlined,$(MODULE_HERE))

# More flags of the linker, which scripts/release sets.
LINK ?=

# -s -w omits symbol tables and debug information, a third of the size. The hook leaves calls about
# codebases in PostgreSQL to lockkeeper.
build: ## build bin/lockkeeper and bin/lockkeeper-hook
	CGO_ENABLED=0 go build $(SMALL) -trimpath -ldflags "-s -w $(LINK)" -o $(BIN)/ ./cmd/lockkeeper
	CGO_ENABLED=0 go build -tags nopostgres $(SMALL_HOOK) -trimpath -ldflags "-s -w $(LINK)" -o $(BIN)/ ./cmd/lockkeeper-hook

# Where the manual pages go.
MAN ?= bin/man1

man: build ## write the manual pages into MAN
	bin/lockkeeper man $(MAN)

pictures: ## renew docs/pictures from a real run, and leave pictures of every page in UI_PICTURES
	scripts/pictures
	mkdir -p $(UI_PICTURES)
	scripts/browser run -- go test -tags ui -count=1 -timeout 60m -run '^(TestPages|TestOperator)$$' -artifacts -outputdir $(UI_PICTURES) ./test/ui

release: ## build tarballs, Debian and npm packages into dist, with checksums; VERSION=1.2.0
	@scripts/release

test-release: ## build a release twice, compare, install it, use it and remove it
	@scripts/test-release

# On the command line, PATH=… replaces the list of directories with programs. /proc has the original.
ifeq ($(origin PATH),command line)
MODULE := $(PATH)
override PATH := $(shell /usr/bin/tr '\0' '\n' </proc/$$PPID/environ | /bin/sed -n 's/^PATH=//p')
endif

module: ## rename the Go module in every file: make module PATH=example.org/lockkeeper
	@scripts/module $(MODULE)

test-module: ## rename the module in a copy, and build, vet and test it
	@scripts/test-module

clean: ## remove the output of build, man and release
	rm -rf bin dist
