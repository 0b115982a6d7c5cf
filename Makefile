# What there is to do here; `make` alone says it. What Debian has to have installed for it is listed in .ci/packages.
.DEFAULT_GOAL := help
.PHONY: help build test bench format lint

# Every target declares what it imports.
swift_options := --explicit-target-dependency-import-check error
# One program at a time, because the helpers of the tests cannot be built so.
released := swift build --configuration release --static-swift-stdlib
sources := Package.swift Sources Tests

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 19

build: ## build everything, tests included
	@.ci/packages build
	swift build --build-tests $(swift_options)

# A program that a test kills ends at once, instead of drawing its backtrace.
test: export SWIFT_BACKTRACE := enable=no
test: ## run every test; the summary comes last
	@.ci/packages build test
	@Tests/make-python
	swift test --disable-xctest $(swift_options)

bench: ## measure against nginx, OpenSSL and librdkafka; ARGS=--help says what can be chosen
	@.ci/packages build bench
	for program in bare-server bulk-produce load simulated-apple verification; do \
	  SIWA_BENCHMARKS=1 $(released) --scratch-path .build/benchmarks --product $$program || exit; done
	@Tests/Benchmarks/measure $(ARGS)

format: ## lay the sources out
	swift format --in-place --recursive --parallel $(sources)

lint: ## say where the layout, a name or a comment is not as agreed
	swift format lint --strict --recursive --parallel $(sources)
