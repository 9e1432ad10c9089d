# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kOFI outside the kernel tree. Linux 6.12 cannot build modules of one source
# folder for several kernels (no MO=), so each kernel has its own copy under
# build/, brought up to date before each make; nothing is built in the sources.
#
# FLAVOUR names a kernel of tools/vm (stock, newest, debug, uml, uml-fast,
# uml-smp, or a release of Debian's) that the cache folder has; KDIR overrides it with any
# prepared kernel. Kbuild says what is built, and how to ask for more. All other
# targets are done by tools/vm/vm.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := all

VM := ./tools/vm/vm
FLAVOUR ?= stock
SUITE ?= *
ONLY ?= *
SOURCES := Kbuild include kofi providers clients samples tests/kunit tests/bench tests/rdma \
	   tests/rping tests/atomic tests/mesh tests/rma tests/tls tests/guide tests/docs/examples.py \
	   README.md Documentation/*.rst Documentation/guide/*.rst

# What an external build leaves in its folder, kept when a copy is updated.
BUILT := *.o *.ko *.cmd *.d *.mod *.mod.c *.symversions .*.cmd .*.d \
	 Module.symvers modules.order .module-common.* page_*.c

ifneq ($(KDIR),)
  COPY := build/$(or $(shell cat $(KDIR)/include/config/kernel.release \
		2>/dev/null),$(error KDIR=$(KDIR) is no prepared kernel: \
		include/config/kernel.release is missing there))
  kdir = $(KDIR)
else
  COPY := build/$(FLAVOUR)
  kdir = $$($(VM) kdir $(FLAVOUR))
endif
# A kernel of tools/vm may come with a compiler of its own, and sees all checkouts
# at one place (tools/vm/within).
kernel_make = ./tools/vm/within "$$k" sh -c 'exec "$$@" "M=$$PLACE/$(COPY)"' make \
	$(MAKE) -C "$$k" $(ARCH_ARG)
ARCH_ARG := $(if $(filter uml%,$(if $(KDIR),,$(FLAVOUR))),ARCH=um)

# Each target below has the list of the files that one package installs.
PREFIX ?= /usr/local
VERSION = $(shell sed -n 's/.*KOFI_VERSION[^"]*"\(.*\)".*/\1/p' include/linux/kofi/version.h)
DKMS := $(DESTDIR)/usr/src/kofi-
DEV := $(DESTDIR)$(PREFIX)/share/doc/kofi-dev
PAGES := $(DESTDIR)$(PREFIX)/share/doc/kofi-doc/pages

.PHONY: all fetch modules built tools 9pd peer bench-user modules_install check docs \
	install install-dkms install-dev install-doc \
	kunit test demo soak bench shell prereq clean distclean help

all: modules tools

fetch: prereq-build
	@$(VM) fetch $(FLAVOUR)

# One build at a time in a copy, also if two makes are at work here.
modules: prereq-build
	+@mkdir -p build && flock $(COPY).lock $(MAKE) built

# Another kernel, although of the same name: nothing it finds there would fit,
# and make would not know, as all of it is newer than that kernel.
built:
	@k=$(kdir) && [ -n "$$k" ] && \
	if [ "$$(cat $(COPY).kernel 2>/dev/null)" != "$$k" ]; then \
		rm -rf $(COPY) && echo "$$k" >$(COPY).kernel; fi
	@mkdir -p $(COPY)
	@rsync -rlpcR --delete --delete-excluded $(BUILT:%=--filter='P %') \
		--exclude='__pycache__' $(BUILT:%=--exclude='%') \
		$(SOURCES) $(COPY)/
	+@k=$(kdir) && [ -n "$$k" ] && $(kernel_make) $(JOBS) $(KFLAGS) modules

modules_install: modules
	@if [ -z "$(KDIR)$(INSTALL_MOD_PATH)" ]; then \
		echo 'modules_install: for which kernel? Give KDIR=, or' \
			'INSTALL_MOD_PATH= for a folder.' >&2; exit 2; fi
	+@k=$(kdir) && [ -n "$$k" ] && $(kernel_make) \
		INSTALL_MOD_DIR=updates/kofi modules_install && \
	r=$$(cat "$$k/include/config/kernel.release") && \
	./tools/install-headers $(COPY) "$$r" "$(INSTALL_MOD_PATH)" && \
	PATH=$$PATH:/usr/sbin:/sbin \
		depmod -b "$(or $(INSTALL_MOD_PATH),/)" "$$r"

tools: prereq-build
	@$(MAKE) -C tools/kofi OUT=$(CURDIR)/build/tools

install:
	@$(MAKE) -C tools/kofi install OUT=$(CURDIR)/build/tools
	@$(MAKE) -C tools/9pd install OUT=$(CURDIR)/build/tools

install-dkms:
	mkdir -p $(DKMS)$(VERSION)
	cp -r --parents Kbuild dkms.conf include kofi providers clients samples \
		tools/install-headers $(DKMS)$(VERSION)

install-dev:
	install -D -m 644 include/uapi/linux/kofi.h $(DESTDIR)$(PREFIX)/include/linux/kofi.h
	install -D -m 644 -t $(DEV)/examples/client tests/client/Kbuild tests/client/client.c
	install -D -m 644 -t $(DEV) Documentation/netlink/specs/kofi.yaml

install-doc:
	mkdir -p $(PAGES)
	cp -r README.md Documentation/*.rst Documentation/guide Documentation/performance \
		Documentation/pictures Documentation/testing $(PAGES)

# A server for mounts of kofi_9p.
9pd:
	@$(MAKE) -C tools/9pd OUT=$(CURDIR)/build/tools

# Programs of some scenarios, over the libfabric of userspace.
peer:
	@$(MAKE) -C tests/vm/peer OUT=$(CURDIR)/build/peer
	@$(MAKE) -C tools/9pd OUT=$(CURDIR)/build/peer

# The same exchange in user space that the bench compares with, and a 9P server.
bench-user:
	@$(MAKE) -C tests/bench/user OUT=$(CURDIR)/build/peer
	@$(MAKE) -C tools/9pd OUT=$(CURDIR)/build/peer

# The argument each of these gives to vm.
export DEVICE KERNEL KERNEL_RELEASE
kunit: ARG = $(SUITE)
test demo soak: ARG = $(ONLY)
shell: ARG = $(or $(KERNEL),stock)
bench: VERB = $(if $(PROFILE),profile,bench)
bench: ARG = $(or $(PROFILE),$(ONLY))
check docs kunit test demo soak bench shell:
	@sh tools/vm/prereq $@ && $(VM) $(or $(VERB),$@) '$(ARG)'

prereq: prereq-test fetch
prereq-%:
	@sh tools/vm/prereq $*

clean:
	@rm -rf build

distclean: clean
	@rm -rf "$${KOFI_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/kofi}"

help:
	@echo 'Building:'
	@echo '  all              modules and the kofi tool (what "make" does), into build/'
	@echo '  modules          kofi and its providers; with CONFIG_KOFI_SAMPLES=m also the'
	@echo '                   sample clients, with CONFIG_KOFI_TESTS=m all there is'
	@echo '  tools            build/tools/kofi, the command line tool'
	@echo '  9pd              build/tools/kofi-9pd, a server for mounts of kofi_9p'
	@echo '  modules_install  install the modules, and the headers for clients of your'
	@echo '                   own (as root; INSTALL_MOD_PATH is honoured)'
	@echo '  install          the tools, below PREFIX (/usr/local; DESTDIR is honoured)'
	@echo '  install-dkms     the sources of the modules, for DKMS, in /usr/src'
	@echo '  install-dev      what programs and clients are built with, below PREFIX'
	@echo '  install-doc      the pages, below PREFIX'
	@echo '  clean            remove build/'
	@echo '  distclean        clean, and remove the cached kernels'
	@echo 'Trying and testing, in virtual machines; nothing touches this kernel:'
	@echo '  demo             show what it does, on the stock kernel of Debian or'
	@echo '                   that of KERNEL_RELEASE=, as newest or 6.12.117+deb12-amd64'
	@echo '  test             prove everything; the report is build/report/tests.tap'
	@echo '  kunit            the unit tests alone, in User-mode Linux, in seconds'
	@echo '  check            W=1, sparse, checkpatch, kernel-doc, coccinelle, sphinx'
	@echo '  docs             build/html/index.html, the documentation, with the kernel-doc'
	@echo '                   comments and pictures'
	@echo '  soak             the long tests'
	@echo '  bench            how fast it is, against raw sockets and user space;'
	@echo '                   the report is build/report/bench.json; with'
	@echo '                   PROFILE="send 1 64": what the instructions are;'
	@echo '                   with " clock" behind it, what the time is'
	@echo '  shell            a machine with the modules loaded'
	@echo '  prereq           check what "test" needs; as root on Debian, install it;'
	@echo '                   fetch the kernel'
	@echo '  fetch            put the kernel of FLAVOUR into the cache folder'
	@echo '  help             this text'
	@echo 'Variables:'
	@echo '  KDIR=dir         build for the prepared kernel in dir, such as'
	@echo '                   /lib/modules/$$(uname -r)/build'
	@echo '  FLAVOUR=name     without KDIR: stock (default), newest, debug, uml, uml-fast,'
	@echo '                   uml-smp or a release; what "make fetch" has put into the cache'
	@echo '  SUITE=glob       kunit: only these suites, or suite.case'
	@echo '  DEVICE=name      kunit: the contract, over an RDMA device in software:'
	@echo '                   rxe or siw; or dma, which stands for hardware; or'
	@echo '                   over the sample provider: loop; or with reliable'
	@echo '                   datagrams over kofi_sock: rdm, or kofi_rxm: rxm,'
	@echo '                   rxe-rxm, siw-rxm; or with datagrams: dgram'
	@echo '  ONLY=glob        test, demo, soak, bench: only these parts, such as "check",'
	@echo '                   "kunit@uml", "smoke" or "smoke@stock"'
	@echo '  KERNEL=name      shell: stock (default), newest, debug, uml or uml-smp; kunit: uml'
	@echo '                   (default), or uml-smp, which has two CPUs'
	@echo '  KOFI_CACHE=dir   where kernels are kept (~/.cache/kofi)'
	@echo '  KOFI_ACCEL=how   tcg, kvm, or auto (default: kvm if a probe boot works)'
