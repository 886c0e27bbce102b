# Tests of confinement: probes that stand where the product's children stand, and Criterion programs that look at them.

CONFINEMENT_OUT := $(BUILD)/tests/confinement
CONFINEMENT_PROBES := $(CONFINEMENT_OUT)/probe-worker $(CONFINEMENT_OUT)/probe-resolver

CONFINEMENT_TRY_OBJ := $(call obj,tests/confinement/attempts.c tests/confinement/attempt_run.c)
CONFINEMENT_STAGE_OBJ := $(CONFINEMENT_TRY_OBJ) \
  $(call obj,$(addprefix tests/confinement/,stage.c procfs.c program.c) parent/spawn.c parent/spawn_child_side.c)

$(CONFINEMENT_OUT)/probe-%: $(BUILD)/obj/tests/confinement/probe_%.o \
  $(call obj,tests/confinement/probe.c child/start.c) $(CONFINEMENT_TRY_OBJ) $(CHILD_COMMON_OBJ)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_COMMON)

$(CONFINEMENT_OUT)/%_test: $(BUILD)/obj/tests/confinement/%_test.o $(CONFINEMENT_STAGE_OBJ) $(CHILD_COMMON_OBJ) \
  | $(CONFINEMENT_PROBES) $(BINARIES)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_COMMON) -lcriterion

UNIT += $(patsubst tests/confinement/%.c,$(CONFINEMENT_OUT)/%,$(wildcard tests/confinement/*_test.c))
TEST_NEEDS += $(CONFINEMENT_PROBES)
