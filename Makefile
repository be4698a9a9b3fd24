# Verbs only; the build itself is meson's. Every verb does its own set-up.
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
Q = sh build-aux/

.PHONY: all demo build test check asan fuzz bench lint cross install clean

all: build

demo: ; @$(Q)setup run && $(Q)build $(BUILD) && $(Q)kernel $(BUILD) && sh scripts/demo $(BUILD)
test: ; @$(Q)setup test && $(Q)build $(BUILD) && $(Q)kernel $(BUILD) && tests/run $(BUILD)
build: ; @$(Q)build $(BUILD)
check: build ; @meson test -C $(BUILD) --suite unit --suite fuzz --suite lint
asan: ; @$(Q)asan $(BUILD)/asan
fuzz: ; @tests/fuzz/run $(BUILD)-fuzz
bench: build ; @tests/bench/run $(BUILD)
lint: build ; @meson test -C $(BUILD) --suite lint
cross: ; @$(Q)cross $(BUILD)-aarch64
install: ; @DESTDIR="$(DESTDIR)" $(Q)install $(BUILD) "$(PREFIX)"
clean: ; @rm -rf $(BUILD) $(BUILD)-fuzz $(BUILD)-aarch64
