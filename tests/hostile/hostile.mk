# The hostile worker, and the tests that set it loose.

HOSTILE_OUT := $(BUILD)/tests/hostile
HOSTILE_OBJ := $(call obj,tests/hostile/main.c tests/hostile/attacks.c)

# The real main, under another name.
$(BUILD)/obj/tests/hostile/worker_main.o: child/worker/main.c $(INC)/.made
	@mkdir -p $(@D)
	$(call say,compile,$< as worker_main)$(CC) $(CFLAGS_ALL) -Dmain=worker_main -Wno-missing-prototypes -I$(INC)/child -c -o $@ $<

$(HOSTILE_OUT)/sallyport-worker: $(HOSTILE_OBJ) $(BUILD)/obj/tests/hostile/worker_main.o \
  $(filter-out $(MAINS),$(WORKER_OBJ)) $(CHILD_COMMON_OBJ)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_WORKER)

TEST_NEEDS += $(HOSTILE_OUT)/sallyport-worker
TEST_PROGRAMS += tests/hostile/run
