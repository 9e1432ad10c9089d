/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of kofi.ko share. Providers never include it. */
#ifndef _KOFI_INTERNAL_H
#define _KOFI_INTERNAL_H

#include <linux/mutex.h>

#include <linux/kofi/provider.h>

/* fid.c: objects */

int kofi_obj_init(struct kofi_obj *obj, struct fi_fid *fid, size_t fclass,
		  const struct fi_ops *ops, struct kofi_obj *parent,
		  struct kofi_provider *prov, void *context);
void kofi_obj_publish(struct kofi_obj *obj);
void kofi_obj_exit(struct kofi_obj *obj);
struct kofi_obj *kofi_obj_next(u32 *id);
const void *kofi_ops_fill(struct kofi_provider *prov, const void *ops,
			  const void *defaults, size_t size);

extern struct mutex kofi_obj_mutex;	/* published objects do not go away */

#endif /* _KOFI_INTERNAL_H */
