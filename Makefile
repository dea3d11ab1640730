# Lockkeeper. `make help` lists the targets.

# How many times longer than in `make test` the randomised tests run.
TORTURE ?= 20

.DEFAULT_GOAL := help
.PHONY: help test test-agents test-ui lint trace torture soak bench build man clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## all checks and tests, with a throwaway PostgreSQL
	@scripts/test

# Without the race detector, under which every process takes a second to end: the sandbox
# starts several for each call.
test-agents: ## the tests that run the real Claude Code, Codex and Gemini CLI, which are installed for them
	scripts/agents run -- go test -tags agents -count=1 -timeout 60m -parallel 4 ./test/agents
	scripts/agents run -- go test -tags agents -count=1 -timeout 60m -run TestRealPrograms ./internal/agent

# Pictures of the pages are left in UI_PICTURES.
UI_PICTURES ?= $(or $(TMPDIR),/tmp)/lockkeeper-pictures

test-ui: ## the dashboard in a real browser, which is installed for it
	mkdir -p $(UI_PICTURES)
	scripts/browser run -- go test -tags ui -count=1 -timeout 60m -artifacts -outputdir $(UI_PICTURES) ./test/ui

lint: ## go vet and staticcheck alone
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...

trace: ## renew the tests in docs/requirements.md
	go test -count=1 -run TestRequirementsAreTraced . -update

# Every test runs; those that draw random operations read LOCKKEEPER_TORTURE as
# a multiplier of their iterations.
torture: ## the randomised tests, TORTURE times longer
	LOCKKEEPER_TORTURE=$(TORTURE) scripts/postgres run -- go test -race -count=1 -timeout 60m ./...

# It stops at the first failure and prints the seed of the order.
soak: ## the tests ROUNDS=20 times in random order, beside BUSY=4 busy loops; PKGS are the packages
	@ROUNDS=$(ROUNDS) BUSY=$(BUSY) PKGS="$(PKGS)" scripts/soak

bench: ## measure against peers; BENCH=-write renews docs/benchmarks.md
	cd bench && go vet ./...
	cd bench && ../scripts/postgres run -- go run . $(BENCH)

# Without symbol tables and debug information, which are a third of the size.
build: ## bin/lockkeeper and bin/lockkeeper-hook
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/ ./cmd/lockkeeper ./cmd/lockkeeper-hook

# Where the manual pages go.
MAN ?= bin/man1

man: build ## the manual pages, into MAN
	bin/lockkeeper man $(MAN)

clean: ## remove what build and man made
	rm -rf bin
