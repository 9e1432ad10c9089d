# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The kernel's RDMA network block device, RNBD, which Debian's kernels do not have:
its modules, built from linux-source for the benchmark."""

import shutil

import kernel
from base import BUILD, CPUS, REPORT, digest, run

PARTS = ("drivers/infiniband/ulp/rtrs", "drivers/block/rnbd")
SETTINGS = ("INFINIBAND_RTRS=m", "INFINIBAND_RTRS_CLIENT=m", "INFINIBAND_RTRS_SERVER=m",
            "BLK_DEV_RNBD=y", "BLK_DEV_RNBD_CLIENT=m", "BLK_DEV_RNBD_SERVER=m")
KBUILD = f"""obj-y := {PARTS[0]}/ {PARTS[1]}/
subdir-ccflags-y := -I$(src)/{PARTS[0]} -I$(obj)/{PARTS[0]}
"""


def modules(k):
    """The .ko files for the kernel K."""
    src, version = kernel.source()
    where = BUILD / f"rnbd-{digest(version, k.release, KBUILD)}"
    stamp = where / "complete"
    if not stamp.exists():
        shutil.rmtree(where, ignore_errors=True)
        for part in PARTS:
            shutil.copytree(src / part, where / part)
        (where / "Kbuild").write_text(KBUILD)
        run(["make", "-C", k.kdir, f"M={where}", f"-j{CPUS}",
             *(f"CONFIG_{s}" for s in SETTINGS), "modules"],
            REPORT / "logs/build-rnbd.log", "RNBD")
        stamp.touch()
    return sorted(where.rglob("*.ko"))
