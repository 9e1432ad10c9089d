/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* version.h - the version of all modules, of the tool and of the packages */
#ifndef _LINUX_KOFI_VERSION_H
#define _LINUX_KOFI_VERSION_H

#define KOFI_VERSION	"0.1.0"

#endif
