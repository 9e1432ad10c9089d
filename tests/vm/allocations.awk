# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads a trace of the kernel's allocation events with their stacks, and prints
# for each "EVENT FUNCTION [MODULE]": who asked for the memory, that is the first
# function which is not one of the allocator's or of its helpers.

/: (kmalloc|kmem_cache_alloc|mm_page_alloc|percpu_alloc_percpu):/ {
	event = $0
	sub(/^.*[0-9]: /, "", event)
	sub(/:.*/, "", event)
	inside = 0
}
/<stack trace>/ { inside = 1; next }
inside && /^ *=> / {
	if ($2 ~ /^(trace_|__traceiter|perf_trace|stack_trace)/ ||
	    $2 ~ /^_*(kmalloc|kmem_cache_alloc|kmem_cache_zalloc|kvmalloc|kzalloc|krealloc|kvrealloc|kmemdup|kvmemdup|kstrdup|kasprintf|kvasprintf|kcalloc)/ ||
	    $2 ~ /^_*(alloc_pages|get_free_page|get_zeroed|folio_alloc|vmalloc|vzalloc|pcpu_alloc|alloc_percpu|alloc_slab|new_slab|slab_alloc|do_kmalloc|kasan_|kmemleak_|create_object|alloc_object|stack_depot|set_track|save_stack|page_frag_alloc)/ ||
	    $2 ~ /^(___slab_alloc|allocate_slab|mempool_alloc|bulk_alloc|alloc_frozen_pages)/)
		next
	print event, $2, $3
	inside = 0
}
