# What there is to do here; `make` alone says it. What Debian has to have installed for it is listed in .ci/packages.
.DEFAULT_GOAL := help
.PHONY: help run build test test-long test-slowly reliability fuzz bench consumption transfers release format lint

# Every target declares what it imports.
swift_options := --explicit-target-dependency-import-check error
# As released. One program at a time, because the helpers of the tests cannot be built so.
release := swift build --configuration release --static-swift-stdlib
programs := siwa siwa-ingress siwa-token-revoker siwa-email-relay siwa-data-eraser siwa-audit-log siwa-accounts
sources := Package.swift Sources Tests

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 19

run: ## build siwa and run `siwa dev`; ONCE=1 adds --once, ARGS takes further arguments
	@.ci/packages build
	swift build --product siwa $(swift_options)
	@"$$(swift build --show-bin-path)/siwa" dev $(if $(ONCE),--once) $(ARGS)

build: ## build everything, tests included
	@.ci/packages build
	swift build --build-tests $(swift_options)

test: ## run every test; the summary comes last
	@.ci/packages build test
	@Tests/make-python
	@Tests/prepare-kafka >/dev/null
	@Tests/run $(swift_options)

test-long: export EFFORT ?= 20
test-long: test reliability ## run every test, with twenty times as many random inputs, and the long trials

test-slowly: ARGS ?= --filter EndToEndTests --skip ReliabilityTests
test-slowly: build ## run tests while the system's calls are held up at random; ARGS="--filter 'A|B'" chooses them
	@.ci/packages test
	@Tests/make-python
	@Tests/prepare-kafka >/dev/null
	@Tests/run-slowly $(ARGS)

# NOTIFICATIONS, RATE (a second), EVENTS, EVENT_RATE, TRANSFERRED_USERS, SEED and FAULTS can be chosen: see docs/reliability.md.
reliability: export NOTIFICATIONS ?= 1000000
reliability: export PROGRAMS = $(CURDIR)/.build/release
reliability: export SWIFT_BACKTRACE := enable=no
reliability: ## run the long trials alone: brokers, network, clock, disks, databases and programs break under load; more than an hour
	@.ci/packages build test
	for program in $(programs); do $(release) --product $$program || exit; done
	swift test --disable-xctest $(swift_options) --filter 'EndToEndTests\.LongReliabilityTests'
	swift test --disable-xctest $(swift_options) --filter ConsumerLongReliabilityTests
	swift test --disable-xctest $(swift_options) --filter MigrationLongReliabilityTests

# With lld: gold, which Swift takes by itself, breaks on the sanitizers' libraries.
fuzz: export SECONDS_EACH ?= 600
fuzz: ## search for inputs that break a reader of outside bytes, ten minutes each; SECONDS_EACH, SUBJECTS
	@.ci/packages build fuzz
	SIWA_FUZZ=1 swift build --configuration release --scratch-path .build/fuzz --product fuzz -Xswiftc -enable-testing \
	  -Xswiftc -sanitize=fuzzer,address -Xswiftc -use-ld=lld
	@Tests/Fuzz/run $(SUBJECTS)

bench: ## measure against nginx, OpenSSL and librdkafka; ARGS=--help says what can be chosen
	@.ci/packages build bench
	for program in siwa siwa-ingress siwa-accounts siwa-audit-log bare-server bulk-produce load people simulated-apple slow-apple verification; do \
	  SIWA_BENCHMARKS=1 $(release) --scratch-path .build/benchmarks --product $$program || exit; done
	@Tests/Benchmarks/measure $(ARGS)

consumption: ## measure the consumers on a broker, on SQLite and PostgreSQL; ARGS=--help says what can be chosen
	@.ci/packages build bench
	for program in siwa siwa-email-relay siwa-token-revoker siwa-data-eraser siwa-audit-log fill slow-apple account-store; do \
	  SIWA_BENCHMARKS=1 $(release) --scratch-path .build/benchmarks --product $$program || exit; done
	@Tests/Benchmarks/consumers $(ARGS)

transfers: ## measure siwa migrate, on SQLite and PostgreSQL; ARGS=--help says what can be chosen
	@.ci/packages build bench
	for program in siwa slow-apple; do SIWA_BENCHMARKS=1 $(release) --scratch-path .build/benchmarks --product $$program || exit; done
	@Tests/Benchmarks/transfers $(ARGS)

release: ## build the programs as they are deployed, into build/: Swift's library linked in, symbols stripped
	@.ci/packages build
	for program in $(programs); do $(release) --product $$program || exit; done
	install -D --strip --target-directory build $(foreach program,$(programs),.build/release/$(program))

format: ## lay the sources out
	swift format --in-place --recursive --parallel $(sources)

lint: ## say where the layout, a name or a comment is not as agreed
	swift format lint --strict --recursive --parallel $(sources)
