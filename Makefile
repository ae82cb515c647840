# SPDX-License-Identifier: GPL-2.0
# AF_QRDMA: what there is to make (make help).  Everything that is built goes
# to build/, or to the cache directory where other clones find it too.

# The kernel that "make module" builds for: stock (Debian's headers), kunit
# (= san), plain, or the directory of any kernel build tree.
KERNEL ?= stock
# Seconds for each fuzzer, scenarios for the simulator
FUZZ_SECONDS ?= 60
SIM_SCENARIOS ?= 2000
J ?= $(shell nproc)

export FUZZ_SECONDS SIM_SCENARIOS

.PHONY: all help setup module userspace kernels core core-big sim fuzz kunit selftests \
	selftests-san programs demo demo-begins bench bench-quick install install-dkms lint check check-kernels \
	build-kernels clean

all: module userspace

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## all            module and userspace (the default)
## setup          install the Debian packages, fetch the kernel image
setup:
	@scripts/setup.sh

## module         qrdma.ko for KERNEL=stock, in build/module/KERNEL
##                (W=1, C=1; OBJ=net/qrdma/x.o: that object alone)
module: setup
	@OBJ=$(OBJ) scripts/module.sh $(KERNEL) -j$(J) $(if $(W),W=$(W)) $(if $(C),C=$(C))

## userspace      libqrdma and the programs
userspace: setup
	@$(MAKE) -s -C userspace

## kernels        the kernel for KUnit and the sanitizers (10-20 minutes)
kernels: setup
	@tests/vm/kernel.sh dir kunit

## core           unit tests of the engine, native
core: setup
	@$(MAKE) -s -C tests/core -j$(J)

## core-big       the same for a big-endian machine, in QEMU
core-big: setup
	@tests/core/big.sh

## sim            two engines over a lossy wire (SIM_SCENARIOS)
sim: setup
	@$(MAKE) -s -C tests/sim -j$(J)

## fuzz           each fuzzer for FUZZ_SECONDS
fuzz: setup
	@$(MAKE) -s -C tests/fuzz -j$(J) run

## kunit          unit tests in the kernel, under KASAN and lockdep
kunit: setup
	@tests/kunit/run.sh

## selftests      system tests on the stock kernel (T=NAME: only that one)
selftests: userspace
	@tests/vm/selftests --kernel stock $(T)

## selftests-san  the same, shortened, on the sanitizer kernel
selftests-san: userspace
	@tests/vm/selftests --kernel san --short $(T)

## programs       the tests with unmodified programs, in their long version
programs: userspace
	@tests/vm/selftests --kernel stock --long $(or $(T),$(patsubst tests/selftests/%.sh,%,$(wildcard tests/selftests/prog_*.sh)))

## demo           a real file between two machines, and what the wire saw
demo-begins:
	@echo "demo: building the module and the programs; minutes, the first time ..."

demo: demo-begins module userspace
	@tests/demo/run.sh

## bench          compare with TCP+TLS, kTLS, RC+TLS and the limits, by counting
##                instructions; table and charts in build/bench/out
bench: module userspace
	@$(MAKE) -s -C tests/bench
	@tests/bench/bench.py

## bench-quick    has a change made it dearer? (RECORD=1: the new measure)
bench-quick: module userspace
	@$(MAKE) -s -C tests/bench
	@tests/bench/bench.py --quick $(if $(RECORD),--record)

## install        module for the running kernel (RELEASE=: another), programs,
##                library, the agent's unit (PREFIX=, DESTDIR=)
install:
	@scripts/install.sh module
	@$(MAKE) -s -C userspace install

## install-dkms   the module by DKMS, for this kernel and those to come
install-dkms:
	@scripts/install.sh dkms

## lint           layers, sizes, lone headers, checkpatch, sparse, W=1
lint: setup
	@tests/lint/run.sh

## check          all tests, and the lint (Documentation/testing.md); the last line counts
check:
	@scripts/check.sh

## build-kernels  compile the module against the newer Debian kernels
build-kernels: setup
	@tests/vm/newer.sh build

## check-kernels  build those kernels and run the selftests on them
check-kernels: userspace
	@tests/vm/newer.sh check

## clean          remove what was built, but for the cache
clean:
	rm -rf build
	@for d in userspace tests/core tests/userspace tests/sim tests/fuzz tests/selftests tests/bench; do \
		[ ! -e $$d/Makefile ] || $(MAKE) -s -C $$d clean; done
