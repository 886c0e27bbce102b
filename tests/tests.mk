# Tests, lint, fuzzing, benchmark, demo. Included by the Makefile.

DEPS ?= packaging/deps.sh
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
INTO := $(BUILD)/tests

# `make DEPS=` skips the look at what is installed.
deps = $(if $(DEPS),$(DEPS) $(1),true)

# Unit tests: one Criterion program per file; the first word of its name says what it is linked with. A file with a
# header beside it is a helper, linked into all programs of its word.
UNIT_HELPERS := $(patsubst %.h,%.c,$(wildcard tests/unit/*.h))
UNIT_HELPERS := $(wildcard $(UNIT_HELPERS))
UNIT := $(patsubst tests/unit/%.c,$(INTO)/%,$(filter-out $(UNIT_HELPERS),$(wildcard tests/unit/*.c)))
without_main = $(filter-out $(MAINS),$(1))
UNIT_OBJ_shared := $(COMMON_OBJ)
UNIT_OBJ_policy := $(COMMON_OBJ)
UNIT_OBJ_config := $(COMMON_OBJ)
UNIT_OBJ_parent := $(call without_main,$(PARENT_OBJ)) $(COMMON_OBJ)
UNIT_OBJ_worker := $(call without_main,$(WORKER_OBJ)) $(CHILD_COMMON_OBJ)
UNIT_OBJ_resolver := $(call without_main,$(RESOLVER_OBJ)) $(CHILD_COMMON_OBJ)
LIBS_TESTS := $(LIBS_PARENT) -lcares

define unit_rule
$(INTO)/$(1)_%: $(BUILD)/obj/tests/unit/$(1)_%.o $$(UNIT_OBJ_$(1)) $(call obj,$(filter tests/unit/$(1)_%,$(UNIT_HELPERS)))
	@mkdir -p $$(@D)
	$$(call say,link,$$@)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$^ $$(LIBS_TESTS) -lcriterion
endef
$(foreach kind,shared policy config parent worker resolver,$(eval $(call unit_rule,$(kind))))
.SECONDARY:

# Programs that print `N passed, N failed` as their last line, or Criterion's. Each of these files adds to TEST_PROGRAMS (built when it
# has a rule) and may add to TEST_NEEDS (built, not run).
TEST_PROGRAMS :=
TEST_NEEDS :=
-include tests/confinement/confinement.mk
-include tests/hostile/hostile.mk

.PHONY: check-build test-suite
test:
	@$(call deps,build test)
	@$(MAKE) --no-print-directory -j$(JOBS) check-build
	@$(MAKE) --no-print-directory test-suite

check-build: all $(UNIT) $(TEST_PROGRAMS) $(TEST_NEEDS)

# ONLY=WORD runs the parts whose path has the word.
test-suite:
	@SALLYPORT_BUILD=$(abspath $(BUILD)) CC='$(CC)' ONLY='$(ONLY)' tests/run.sh tests/build/includes.sh $(UNIT) $(TEST_PROGRAMS) tests/e2e/run.py

# The whole suite again, on binaries with sanitizers (objects apart, so that nothing is mixed).
asan:
	@$(call deps,build test)
	@$(MAKE) --no-print-directory test DEPS= BUILD=build/asan SANITIZE=address
ubsan:
	@$(call deps,build test)
	@$(MAKE) --no-print-directory test DEPS= BUILD=build/ubsan SANITIZE=undefined

lint:
	@$(call deps,build lint)
	@MAKE='$(MAKE)' JOBS='$(JOBS)' tests/lint.sh

# Every unit that is compiled, tests included; what `make lint` runs per compiler.
.PHONY: objects
objects: $(MAINS) $(call without_main,$(PARENT_OBJ) $(WORKER_OBJ) $(RESOLVER_OBJ)) $(COMMON_OBJ) \
  $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/unit/*.c tests/hostile/*.c tests/confinement/*.c tests/bench/*.c))

format:
	@command -v clang-format >/dev/null || $(call deps,lint)
	clang-format -i $$(find shared policy parent child tests -name '*.[ch]')

# Fuzzers: each links only what it refers to, from archives of everything but the mains.
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BUILD := build/fuzz
.PHONY: fuzz-build
fuzz:
	@$(call deps,build lint)
	@$(MAKE) --no-print-directory -j$(JOBS) fuzz-build BUILD=$(FUZZ_BUILD) CC=clang SANITIZE=address,fuzzer-no-link
	@BUILD=$(FUZZ_BUILD) FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/fuzz.sh $(FUZZERS)
fuzz-build: $(addprefix $(BUILD)/,$(FUZZERS))
$(BUILD)/everything.a: $(call without_main,$(PARENT_OBJ) $(sort $(WORKER_OBJ) $(RESOLVER_OBJ))) $(COMMON_OBJ)
	$(call say,archive,$@)rm -f $@ && ar rcs $@ $^
$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/everything.a
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LIBS_TESTS)

BENCH := $(BUILD)/bench/bare_relay $(BUILD)/bench/load $(BUILD)/bench/origin
$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^
.PHONY: bench-build
bench-build: all $(BENCH)
bench:
	@$(call deps,build test)
	@$(MAKE) --no-print-directory -j$(JOBS) bench-build
	@SALLYPORT_BUILD=$(abspath $(BUILD)) tests/bench/run

run:
	@$(call deps,build run)
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@SALLYPORT_BUILD=$(abspath $(BUILD)) PORT='$(PORT)' packaging/demo/run

deps:
	@packaging/deps.sh build run test lint

help:
	@echo 'make            build $(BUILD)/sallyport and its children'
	@echo 'make run        build and serve a demo on 127.0.0.1:$(PORT) (PORT=...), print what to try'
	@echo 'make test       build and run every test (ONLY=WORD: those whose path has it)'
	@echo 'make asan       the same with AddressSanitizer;  make ubsan: with UndefinedBehaviorSanitizer'
	@echo 'make lint       gcc and clang with all warnings, clang-tidy, cppcheck, house rules'
	@echo 'make format     clang-format on every C file'
	@echo 'make fuzz       run the fuzzers, FUZZ_SECONDS=$(FUZZ_SECONDS) each'
	@echo 'make bench      CPU per tunnel against a bare relay and tinyproxy'
	@echo 'make install    into DESTDIR= PREFIX=$(PREFIX)'
	@echo 'make deps       install what is missing for all of this; run, test and others do so for themselves (DEPS= skips)'
	@echo 'make clean      remove build/'
	@echo
	@echo 'FILTER_LOG=1    diagnosis build whose filter logs instead of killing; packages never have it'
