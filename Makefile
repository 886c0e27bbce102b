# Sallyport. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
LIBEXECDIR ?= $(PREFIX)/libexec/sallyport
PORT ?= 3128
ifeq ($(origin CC),default) # make has one of its own; CC=clang from outside is kept
CC := gcc
endif
BUILD ?= build
VERSION := 0.1.0

PACKAGES := libevent_core libseccomp libcap libcares yaml-0.1 jansson libpsl
PKG_CFLAGS = $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)

# A flag is used where the compiler has it.
has = $(shell echo 'int main(void){return 0;}' | $(CC) $(1) -Werror -x c - -o /dev/null 2>/dev/null && echo '$(1)')

WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wvla -Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -Werror
ifeq ($(SANITIZE),)
OPTIMISE ?= -O2 -g
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong \
  $(call has,-fstack-clash-protection) $(call has,-fcf-protection=full) $(call has,-ftrivial-auto-var-init=zero)
else
OPTIMISE ?= -O1 -g -fno-omit-frame-pointer
HARDEN := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -DSALLYPORT_SANITIZER=1
LINK_SANITIZE := -fsanitize=$(SANITIZE)
endif
# For diagnosis only: the filter logs instead of killing. Packages never set it.
ifneq ($(FILTER_LOG),)
HARDEN += -DSALLYPORT_FILTER_LOG=1
endif
CFLAGS_ALL = -std=gnu11 -D_GNU_SOURCE -DSALLYPORT_VERSION='"$(VERSION)"' -DSALLYPORT_LIBEXECDIR='"$(LIBEXECDIR)"' \
  $(WARNINGS) $(OPTIMISE) $(HARDEN) -fPIE -fvisibility=hidden -MMD -MP $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed $(LINK_SANITIZE) $(LDFLAGS)

# Include paths keep the direction shared <- policy <- parent, shared <- policy <- child: each side sees a folder of
# links to what it may include, and nothing else; a path with ".." is refused before anything is compiled.
INC := $(BUILD)/include
allowed_shared := shared
allowed_policy := shared policy
allowed_parent := shared policy parent
allowed_child  := shared policy child
allowed_tests  := shared policy parent child tests

SHARED := $(wildcard shared/*.c)
POLICY := $(wildcard policy/*/*.c)
PARENT := $(wildcard parent/*.c)
CHILD := $(wildcard child/*.c)
WORKER := $(wildcard child/worker/*.c)
RESOLVER := $(wildcard child/resolver/*.c)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
COMMON_OBJ := $(call obj,$(SHARED) $(POLICY))
MAINS := $(call obj,parent/main.c child/worker/main.c child/resolver/main.c)
PARENT_OBJ := $(call obj,$(PARENT))
WORKER_OBJ := $(call obj,$(CHILD) $(WORKER))
RESOLVER_OBJ := $(call obj,$(CHILD) $(RESOLVER))

LIBS_COMMON := -lseccomp -lcap
LIBS_PARENT := $(LIBS_COMMON) -levent_core -lyaml -ljansson -lpsl -lpthread
LIBS_WORKER := $(LIBS_COMMON) -levent_core
LIBS_RESOLVER := $(LIBS_COMMON) -levent_core -lcares

# Commands are named, not shown; V=1 shows them.
say = $(if $(V),,@echo '  $(1)' '$(2)' &&) 

BINARIES := $(BUILD)/sallyport $(BUILD)/sallyport-worker $(BUILD)/sallyport-resolver

.PHONY: all run test asan ubsan lint format fuzz bench install clean help deps check-includes
all: $(BINARIES)

$(BUILD)/sallyport: $(PARENT_OBJ) $(COMMON_OBJ)
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_PARENT)
# Children link the configuration loader nowhere: only what they use of policy/ comes in.
CHILD_COMMON_OBJ := $(call obj,$(SHARED) $(wildcard policy/egress/*.c policy/confinement/*.c))
$(BUILD)/sallyport-worker: $(WORKER_OBJ) $(CHILD_COMMON_OBJ)
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_WORKER)
$(BUILD)/sallyport-resolver: $(RESOLVER_OBJ) $(CHILD_COMMON_OBJ)
	$(call say,link,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_RESOLVER)

define side_rule
$(BUILD)/obj/$(1)/%.o: $(1)/%.c $(INC)/.made | check-includes
	@mkdir -p $$(@D)
	$$(call say,compile,$$<)$$(CC) $$(CFLAGS_ALL) -I$(INC)/$(1) -c -o $$@ $$<
endef
$(foreach side,shared policy parent child tests,$(eval $(call side_rule,$(side))))

$(INC)/.made: Makefile
	@rm -rf $(INC)
	@$(foreach side,shared policy parent child tests,mkdir -p $(INC)/$(side); \
	  $(foreach seen,$(allowed_$(side)),ln -s $(CURDIR)/$(seen) $(INC)/$(side)/$(seen);))
	@touch $@

check-includes:
	@! grep -rnE '#[[:space:]]*include[[:space:]]*["<][^">]*\.\.' shared policy parent child --include='*.[ch]' \
	  || { echo 'an include path with ".." would evade the direction shared <- policy <- parent, child' >&2; exit 1; }

-include tests/tests.mk

install: all
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(LIBEXECDIR)
	install -m 755 $(BUILD)/sallyport $(DESTDIR)$(PREFIX)/sbin/sallyport
	install -m 755 $(BUILD)/sallyport-worker $(BUILD)/sallyport-resolver $(DESTDIR)$(LIBEXECDIR)/
	install -d $(DESTDIR)$(PREFIX)/share/man/man8 $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 644 packaging/man/sallyport.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	install -m 644 packaging/man/sallyport.yaml.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	install -d $(DESTDIR)$(PREFIX)/share/doc/sallyport/examples/allow.d
	install -m 644 packaging/config/sallyport.yaml $(DESTDIR)$(PREFIX)/share/doc/sallyport/examples/
	install -m 644 packaging/config/allow.d/base.list $(DESTDIR)$(PREFIX)/share/doc/sallyport/examples/allow.d/

clean:
	rm -rf build

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
