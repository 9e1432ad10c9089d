/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every call of a consumer with each pointer it follows left out: NULL_CALL(name,
 * what it returns, the call). n has one open object of each kind, and none, which is
 * in the place of an object: NULL, and other values that are none. Included once for
 * the functions and once for the table of null_test.c.
 *
 * Not here: transfers, which go straight to the provider, fi_mr_key() and fi_mr_desc().
 * They follow the object and the message; arrays those leave out are refused
 * (contract/input_test.c).
 */

/* discovery */
NULL_CALL(getinfo_info, -EINVAL, fi_getinfo(fi_version(), NULL, NULL, 0, NULL, NULL))
NULL_CALL(getinfo_net, -EINVAL, kofi_getinfo(NULL, fi_version(), NULL, NULL, 0, NULL, &n->info,
					     GFP_KERNEL))
NULL_CALL(freeinfo, 0, (fi_freeinfo(NULL), 0))
NULL_CALL(client_register, -EINVAL, kofi_client_register(NULL))
NULL_CALL(client_unregister, 0, (kofi_client_unregister(NULL), 0))
NULL_CALL(tostr_data, 0, ({ guard(preempt)(); fi_tostr(NULL, FI_TYPE_INFO); }))
NULL_CALL(tostr_r_data, 0, fi_tostr_r(n->text, sizeof(n->text), NULL, FI_TYPE_INFO))
NULL_CALL(tostr_r_buf, 0, fi_tostr_r(NULL, 1, n->world->info, FI_TYPE_INFO))

/* any object */
NULL_CALL(close, -EINVAL, fi_close(n->none))
NULL_CALL(control, -EINVAL, fi_control(n->none, FI_ENABLE, NULL))
NULL_CALL(control_getopsflag, -EINVAL, fi_control(&n->ep->fid, FI_GETOPSFLAG, NULL))
NULL_CALL(control_setopsflag, -EINVAL, fi_control(&n->ep->fid, FI_SETOPSFLAG, NULL))
NULL_CALL(control_getwait, -EINVAL, fi_control(&n->cq->fid, FI_GETWAIT, NULL))
NULL_CALL(control_getwaitobj, -EINVAL, fi_control(&n->eq->fid, FI_GETWAITOBJ, NULL))
NULL_CALL(open_ops, -EINVAL, fi_open_ops(n->none, "name", 0, &n->ops, NULL))
NULL_CALL(open_ops_name, -EINVAL, fi_open_ops(&n->ep->fid, NULL, 0, &n->ops, NULL))
NULL_CALL(open_ops_ops, -EINVAL, fi_open_ops(&n->ep->fid, "name", 0, NULL, NULL))
NULL_CALL(set_ops, -EINVAL, fi_set_ops(n->none, "name", 0, n, NULL))
NULL_CALL(set_ops_name, -EINVAL, fi_set_ops(&n->ep->fid, NULL, 0, n, NULL))
NULL_CALL(set_ops_ops, -EINVAL, fi_set_ops(&n->ep->fid, "name", 0, NULL, NULL))

/* fabrics and domains */
NULL_CALL(fabric_attr, -EINVAL, fi_fabric(NULL, &n->fabric, NULL))
NULL_CALL(fabric_fabric, -EINVAL, fi_fabric(n->world->info->fabric_attr, NULL, NULL))
NULL_CALL(fabric_name, -EINVAL, fi_fabric(&(struct fi_fabric_attr){ .prov_name = "model" },
					  &n->fabric, NULL))
NULL_CALL(fabric_prov_name, -EINVAL, fi_fabric(&(struct fi_fabric_attr){ .name = "none" },
					       &n->fabric, NULL))
NULL_CALL(fabric2_info, -EINVAL, fi_fabric2(NULL, &n->fabric, 0, NULL))
NULL_CALL(fabric2_attr, -EINVAL, fi_fabric2(&n->empty, &n->fabric, 0, NULL))
NULL_CALL(domain_fabric, -EINVAL, fi_domain(n->none, n->world->info, &n->domain, NULL))
NULL_CALL(domain_info, -EINVAL, fi_domain(n->world->fabric, NULL, &n->domain, NULL))
NULL_CALL(domain_domain, -EINVAL, fi_domain(n->world->fabric, n->world->info, NULL, NULL))
NULL_CALL(domain2_info, -EINVAL, fi_domain2(n->world->fabric, NULL, &n->domain, 0, NULL))
NULL_CALL(domain_bind, -EINVAL, fi_domain_bind(n->none, &n->eq->fid, 0))
NULL_CALL(domain_bind_eq, -EINVAL, fi_domain_bind(n->world->domain, n->none, 0))
NULL_CALL(domain_device, 0, kofi_domain_device(n->none))
NULL_CALL(domain_its_fabric, 0, kofi_domain_fabric(n->none))
NULL_CALL(domain_node, NUMA_NO_NODE, kofi_domain_node(n->none))
NULL_CALL(domain_vector_cpus, 0, kofi_domain_vector_cpus(n->none, 0))
NULL_CALL(query_atomic, -EINVAL, fi_query_atomic(n->none, FI_UINT64, FI_SUM, &n->atomic, 0))
NULL_CALL(query_atomic_attr, -EINVAL, fi_query_atomic(n->world->domain, FI_UINT64, FI_SUM, NULL, 0))

NULL_CALL(atomicvalid, -EINVAL, fi_atomicvalid(n->none, FI_UINT64, FI_SUM, &n->len))
NULL_CALL(atomicvalid_count, -EINVAL, fi_atomicvalid(n->ep, FI_UINT64, FI_SUM, NULL))
NULL_CALL(fetch_atomicvalid, -EINVAL, fi_fetch_atomicvalid(n->none, FI_UINT64, FI_SUM, &n->len))
NULL_CALL(fetch_atomicvalid_count, -EINVAL, fi_fetch_atomicvalid(n->ep, FI_UINT64, FI_SUM, NULL))
NULL_CALL(compare_atomicvalid, -EINVAL, fi_compare_atomicvalid(n->none, FI_UINT64, FI_CSWAP,
							       &n->len))
NULL_CALL(compare_atomicvalid_count, -EINVAL, fi_compare_atomicvalid(n->ep, FI_UINT64, FI_CSWAP,
								     NULL))

/* event queues */
NULL_CALL(eq_open_fabric, -EINVAL, fi_eq_open(n->none, NULL, &n->eq2, NULL))
NULL_CALL(eq_open_eq, -EINVAL, fi_eq_open(n->world->fabric, NULL, NULL, NULL))
NULL_CALL(kofi_eq_open_fabric, -EINVAL, kofi_eq_open(n->none, NULL, NULL, &n->eq2, NULL))
NULL_CALL(kofi_eq_open_eq, -EINVAL, kofi_eq_open(n->world->fabric, NULL, NULL, NULL, NULL))
NULL_CALL(eq_open_set, -EINVAL, fi_eq_open(n->world->fabric,
					   &(struct fi_eq_attr){ .wait_obj = FI_WAIT_SET,
							.wait_set = n->none },
					   &n->eq2, NULL))
NULL_CALL(eq_read, -EINVAL, fi_eq_read(n->none, &n->event, n->text, sizeof(n->text), 0))
NULL_CALL(eq_read_event, -EINVAL, fi_eq_read(n->eq, NULL, n->text, sizeof(n->text), 0))
NULL_CALL(eq_read_buf, -EINVAL, fi_eq_read(n->eq, &n->event, NULL, sizeof(n->text), 0))
NULL_CALL(eq_sread, -EINVAL, fi_eq_sread(n->none, &n->event, n->text, sizeof(n->text), 0, 0))
NULL_CALL(eq_sread_event, -EINVAL, fi_eq_sread(n->eq, NULL, n->text, sizeof(n->text), 0, 0))
NULL_CALL(eq_sread_buf, -EINVAL, fi_eq_sread(n->eq, &n->event, NULL, sizeof(n->text), 0, 0))
NULL_CALL(eq_readerr, -EINVAL, fi_eq_readerr(n->none, &n->eq_err, 0))
NULL_CALL(eq_readerr_buf, -EINVAL, fi_eq_readerr(n->eq, NULL, 0))
NULL_CALL(eq_write, -EINVAL, fi_eq_write(n->none, 1, n->text, 1, 0))
NULL_CALL(eq_write_buf, -EINVAL, fi_eq_write(n->eq, 1, NULL, 1, 0))
NULL_CALL(eq_strerror, false, !fi_eq_strerror(n->none, 1, NULL, NULL, 1))

/* passive endpoints */
NULL_CALL(passive_ep_fabric, -EINVAL, fi_passive_ep(n->none, n->world->info, &n->pep, NULL))
NULL_CALL(passive_ep_info, -EINVAL, fi_passive_ep(n->world->fabric, NULL, &n->pep, NULL))
NULL_CALL(passive_ep_pep, -EINVAL, fi_passive_ep(n->world->fabric, n->world->info, NULL, NULL))
NULL_CALL(passive_ep_attrs, -EINVAL, fi_passive_ep(n->world->fabric, &n->empty, &n->pep, NULL))
NULL_CALL(pep_bind, -EINVAL, fi_pep_bind(n->none, &n->eq->fid, 0))
NULL_CALL(listen, -EINVAL, fi_listen(n->none))
NULL_CALL(reject, -EINVAL, fi_reject(n->none, &n->ep->fid, NULL, 0))

/* endpoints */
NULL_CALL(endpoint_domain, -EINVAL, fi_endpoint(n->none, n->world->info, &n->ep2, NULL))
NULL_CALL(endpoint_info, -EINVAL, fi_endpoint(n->world->domain, NULL, &n->ep2, NULL))
NULL_CALL(endpoint_ep, -EINVAL, fi_endpoint(n->world->domain, n->world->info, NULL, NULL))
NULL_CALL(endpoint_attrs, -EINVAL, fi_endpoint(n->world->domain, &n->empty, &n->ep2, NULL))
NULL_CALL(endpoint2_info, -EINVAL, fi_endpoint2(n->world->domain, NULL, &n->ep2, 0, NULL))
NULL_CALL(srx_context_domain, -EINVAL, fi_srx_context(n->none, NULL, &n->ep2, NULL))
NULL_CALL(srx_context_srx, -EINVAL, fi_srx_context(n->world->domain, NULL, NULL, NULL))
NULL_CALL(scalable_ep_domain, -EINVAL, fi_scalable_ep(n->none, n->sep_info, &n->ep2, NULL))
NULL_CALL(scalable_ep_info, -EINVAL, fi_scalable_ep(n->world->domain, NULL, &n->ep2, NULL))
NULL_CALL(scalable_ep_sep, -EINVAL, fi_scalable_ep(n->world->domain, n->sep_info, NULL, NULL))
NULL_CALL(scalable_ep_attrs, -EINVAL, fi_scalable_ep(n->world->domain, &n->empty, &n->ep2, NULL))
NULL_CALL(scalable_ep_bind, -EINVAL, fi_scalable_ep_bind(n->none, &n->av->fid, 0))
NULL_CALL(scalable_ep_bind_fid, -EINVAL, fi_scalable_ep_bind(n->sep, n->none, 0))
NULL_CALL(tx_context, -EINVAL, fi_tx_context(n->none, 0, NULL, &n->ep2, NULL))
NULL_CALL(tx_context_ep, -EINVAL, fi_tx_context(n->sep, 0, NULL, NULL, NULL))
NULL_CALL(rx_context, -EINVAL, fi_rx_context(n->none, 0, NULL, &n->ep2, NULL))
NULL_CALL(rx_context_ep, -EINVAL, fi_rx_context(n->sep, 0, NULL, NULL, NULL))
NULL_CALL(sep_getname_addr, -EINVAL, fi_getname(&n->sep->fid, NULL, &n->len))
NULL_CALL(sep_getname_len, -EINVAL, fi_getname(&n->sep->fid, n->text, NULL))
NULL_CALL(ep_bind, -EINVAL, fi_ep_bind(n->none, &n->eq->fid, 0))
NULL_CALL(ep_bind_fid, -EINVAL, fi_ep_bind(n->ep, n->none, 0))
NULL_CALL(enable, -EINVAL, fi_enable(n->none))
NULL_CALL(cancel, -EINVAL, fi_cancel(n->none, n))
NULL_CALL(setopt, -EINVAL, fi_setopt(n->none, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &n->len,
				     sizeof(n->len)))
NULL_CALL(setopt_val, -EINVAL, fi_setopt(&n->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL,
					 sizeof(n->len)))
NULL_CALL(getopt, -EINVAL, fi_getopt(n->none, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &n->text, &n->len))
NULL_CALL(getopt_val, -EINVAL, fi_getopt(&n->ep->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, NULL,
					 &n->len))
NULL_CALL(getopt_len, -EINVAL, fi_getopt(&n->ep->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &n->text,
					 NULL))
NULL_CALL(drain, -EINVAL, kofi_ep_drain(n->none))
NULL_CALL(abort, -EINVAL, kofi_ep_abort(n->none))
NULL_CALL(cancel_connect, -EINVAL, kofi_ep_cancel_connect(n->none))
NULL_CALL(write_space, -EINVAL, kofi_ep_write_space(n->none, NULL))
NULL_CALL(remote_cqe, -EINVAL, kofi_ep_remote_cqe(n->none, NULL))
NULL_CALL(set_source, -EINVAL, kofi_ep_set_source(n->none, 1))
NULL_CALL(setname, -EINVAL, fi_setname(n->none, n->text, sizeof(n->text)))
NULL_CALL(setname_addr, -EINVAL, fi_setname(&n->ep->fid, NULL, sizeof(n->text)))
NULL_CALL(getname, -EINVAL, fi_getname(n->none, n->text, &n->len))
NULL_CALL(getname_addr, -EINVAL, fi_getname(&n->ep->fid, NULL, &n->len))
NULL_CALL(getname_len, -EINVAL, fi_getname(&n->ep->fid, n->text, NULL))
NULL_CALL(getpeer, -EINVAL, fi_getpeer(n->none, n->text, &n->len))
NULL_CALL(getpeer_addr, -EINVAL, fi_getpeer(n->ep, NULL, &n->len))
NULL_CALL(getpeer_len, -EINVAL, fi_getpeer(n->ep, n->text, NULL))
NULL_CALL(connect, -EINVAL, fi_connect(n->none, n->text, NULL, 0))
NULL_CALL(connect_addr, -EINVAL, fi_connect(n->ep, NULL, NULL, 0))
NULL_CALL(connect_param, -EINVAL, fi_connect(n->ep, n->text, NULL, 1))
NULL_CALL(accept, -EINVAL, fi_accept(n->none, NULL, 0))
NULL_CALL(accept_handle, -EINVAL, fi_accept(n->ep, NULL, 0))
NULL_CALL(shutdown, -EINVAL, fi_shutdown(n->none, 0))

/* completion queues */
NULL_CALL(cq_open_domain, -EINVAL, fi_cq_open(n->none, NULL, &n->cq2, NULL))
NULL_CALL(cq_open_cq, -EINVAL, fi_cq_open(n->world->domain, NULL, NULL, NULL))
NULL_CALL(kofi_cq_open_domain, -EINVAL, kofi_cq_open(n->none, NULL, NULL, &n->cq2, NULL))
NULL_CALL(kofi_cq_open_cq, -EINVAL, kofi_cq_open(n->world->domain, NULL, NULL, NULL, NULL))
NULL_CALL(cq_open_set, -EINVAL, fi_cq_open(n->world->domain,
					   &(struct fi_cq_attr){ .wait_obj = FI_WAIT_SET,
							.wait_set = n->none },
					   &n->cq2, NULL))
NULL_CALL(cq_read, -EINVAL, fi_cq_read(n->none, n->text, 1))
NULL_CALL(cq_read_buf, -EINVAL, fi_cq_read(n->cq, NULL, 1))
NULL_CALL(cq_readfrom, -EINVAL, fi_cq_readfrom(n->none, n->text, 1, NULL))
NULL_CALL(cq_readfrom_buf, -EINVAL, fi_cq_readfrom(n->cq, NULL, 1, NULL))
NULL_CALL(cq_sread, -EINVAL, fi_cq_sread(n->none, n->text, 1, NULL, 0))
NULL_CALL(cq_sread_buf, -EINVAL, fi_cq_sread(n->cq, NULL, 1, NULL, 0))
NULL_CALL(cq_sreadfrom_buf, -EINVAL, fi_cq_sreadfrom(n->cq, NULL, 1, NULL, NULL, 0))
NULL_CALL(cq_readerr, -EINVAL, fi_cq_readerr(n->none, &n->cq_err, 0))
NULL_CALL(cq_readerr_buf, -EINVAL, fi_cq_readerr(n->cq, NULL, 0))
NULL_CALL(cq_signal, -EINVAL, fi_cq_signal(n->none))
NULL_CALL(cq_strerror, false, !fi_cq_strerror(n->none, 1, NULL, NULL, 1))
NULL_CALL(cq_poll, -EINVAL, kofi_cq_poll(n->none, 1))

/* counters */
NULL_CALL(cntr_open_domain, -EINVAL, fi_cntr_open(n->none, NULL, &n->cntr2, NULL))
NULL_CALL(cntr_open_cntr, -EINVAL, fi_cntr_open(n->world->domain, NULL, NULL, NULL))
NULL_CALL(cntr_read, 0, fi_cntr_read(n->none))
NULL_CALL(cntr_readerr, 0, fi_cntr_readerr(n->none))
NULL_CALL(cntr_add, -EINVAL, fi_cntr_add(n->none, 1))
NULL_CALL(cntr_adderr, -EINVAL, fi_cntr_adderr(n->none, 1))
NULL_CALL(cntr_set, -EINVAL, fi_cntr_set(n->none, 1))
NULL_CALL(cntr_seterr, -EINVAL, fi_cntr_seterr(n->none, 1))
NULL_CALL(cntr_wait, -EINVAL, fi_cntr_wait(n->none, 1, 0))

/* wait sets and poll sets */
NULL_CALL(wait_open_fabric, -EINVAL, fi_wait_open(n->none, NULL, &n->set2))
NULL_CALL(wait_open_set, -EINVAL, fi_wait_open(n->world->fabric, NULL, NULL))
NULL_CALL(wait, -EINVAL, fi_wait(n->none, 0))
NULL_CALL(trywait_fabric, -EINVAL, fi_trywait(n->none, (fid_t *)&n->none, 1))
NULL_CALL(trywait_fids, -EINVAL, fi_trywait(n->world->fabric, NULL, 1))
NULL_CALL(trywait_fid, -EINVAL, fi_trywait(n->world->fabric, (fid_t *)&n->none, 1))
NULL_CALL(poll_open_domain, -EINVAL, fi_poll_open(n->none, NULL, &n->poll2))
NULL_CALL(poll_open_set, -EINVAL, fi_poll_open(n->world->domain, NULL, NULL))
NULL_CALL(poll_add, -EINVAL, fi_poll_add(n->none, &n->cq->fid, 0))
NULL_CALL(poll_add_fid, -EINVAL, fi_poll_add(n->poll, n->none, 0))
NULL_CALL(poll_del, -EINVAL, fi_poll_del(n->none, &n->cq->fid, 0))
NULL_CALL(poll_del_fid, -EINVAL, fi_poll_del(n->poll, n->none, 0))
NULL_CALL(poll, -EINVAL, fi_poll(n->none, &n->ops, 1))
NULL_CALL(poll_context, -EINVAL, fi_poll(n->poll, NULL, 1))

/* address vectors */
NULL_CALL(av_open_domain, -EINVAL, fi_av_open(n->none, NULL, &n->av2, NULL))
NULL_CALL(av_open_av, -EINVAL, fi_av_open(n->world->domain, NULL, NULL, NULL))
NULL_CALL(av_bind, -EINVAL, fi_av_bind(n->none, &n->eq->fid, 0))
NULL_CALL(av_bind_eq, -EINVAL, fi_av_bind(n->av, n->none, 0))
NULL_CALL(av_insert, -EINVAL, fi_av_insert(n->none, n->text, 1, &n->addr, 0, NULL))
NULL_CALL(av_insert_addr, -EINVAL, fi_av_insert(n->av, NULL, 1, &n->addr, 0, NULL))
NULL_CALL(av_insert_map, -EINVAL, fi_av_insert(n->av, n->text, 1, NULL, 0, NULL))
NULL_CALL(av_insertsvc, -EINVAL, fi_av_insertsvc(n->none, "127.0.0.1", "1", &n->addr, 0, NULL))
NULL_CALL(av_insertsvc_node, -EINVAL, fi_av_insertsvc(n->av, NULL, "1", &n->addr, 0, NULL))
NULL_CALL(av_insertsvc_service, -EINVAL, fi_av_insertsvc(n->av, "127.0.0.1", NULL, &n->addr, 0,
							 NULL))
NULL_CALL(av_insertsym, -EINVAL, fi_av_insertsym(n->none, "127.0.0.1", 1, "1", 1, &n->addr, 0,
						 NULL))
NULL_CALL(av_insertsym_node, -EINVAL, fi_av_insertsym(n->av, NULL, 1, "1", 1, &n->addr, 0, NULL))
NULL_CALL(av_insertsym_service, -EINVAL, fi_av_insertsym(n->av, "127.0.0.1", 1, NULL, 1, &n->addr,
							 0, NULL))
NULL_CALL(av_remove, -EINVAL, fi_av_remove(n->none, &n->addr, 1, 0))
NULL_CALL(av_remove_addr, -EINVAL, fi_av_remove(n->av, NULL, 1, 0))
NULL_CALL(av_lookup, -EINVAL, fi_av_lookup(n->none, 0, n->text, &n->len))
NULL_CALL(av_lookup_addr, -EINVAL, fi_av_lookup(n->av, 0, NULL, &n->len))
NULL_CALL(av_lookup_len, -EINVAL, fi_av_lookup(n->av, 0, n->text, NULL))
NULL_CALL(av_straddr, 0, fi_av_straddr(n->none, n->text, n->text, &n->len))
NULL_CALL(av_straddr_addr, 0, fi_av_straddr(n->av, NULL, n->text, &n->len))
NULL_CALL(av_straddr_buf, 0, fi_av_straddr(n->av, n->text, NULL, &n->len))
NULL_CALL(av_straddr_len, 0, fi_av_straddr(n->av, n->text, n->text, NULL))
NULL_CALL(av_set_user_id, -EINVAL, fi_av_set_user_id(n->none, 0, 1, 0))

/* regions */
NULL_CALL(mr_regattr_domain, -EINVAL, fi_mr_regattr(n->none, &n->mr_attr, 0, &n->mr2))
NULL_CALL(mr_regattr_attr, -EINVAL, fi_mr_regattr(n->world->domain, NULL, 0, &n->mr2))
NULL_CALL(mr_regattr_iov, -EINVAL, fi_mr_regattr(n->world->domain, &n->mr_attr, 0, &n->mr2))
NULL_CALL(mr_regattr_mr, -EINVAL, fi_mr_regattr(n->world->domain, &n->mr_attr, 0, NULL))
NULL_CALL(mr_regv_domain, -EINVAL, fi_mr_regv(n->none, &n->iov, 1, FI_REMOTE_READ, 0, 0, 0, &n->mr2,
					      NULL))
NULL_CALL(mr_regv_iov, -EINVAL, fi_mr_regv(n->world->domain, NULL, 1, FI_REMOTE_READ, 0, 0, 0,
					   &n->mr2, NULL))
NULL_CALL(mr_regv_base, -EINVAL, fi_mr_regv(n->world->domain, &n->iov, 1, FI_REMOTE_READ, 0, 0, 0,
					    &n->mr2, NULL))
NULL_CALL(mr_reg_domain, -EINVAL, fi_mr_reg(n->none, n, 1, FI_REMOTE_READ, 0, 0, 0, &n->mr2, NULL))
NULL_CALL(mr_reg_buf, -EINVAL, fi_mr_reg(n->world->domain, NULL, 1, FI_REMOTE_READ, 0, 0, 0,
					 &n->mr2, NULL))
NULL_CALL(mr_reg_mr, -EINVAL, fi_mr_reg(n->world->domain, n, 1, FI_REMOTE_READ, 0, 0, 0, NULL,
					NULL))
NULL_CALL(mr_bind, -EINVAL, fi_mr_bind(n->none, &n->ep->fid, 0))
NULL_CALL(mr_bind_fid, -EINVAL, fi_mr_bind(n->mr, n->none, 0))
NULL_CALL(mr_enable, -EINVAL, fi_mr_enable(n->none))
NULL_CALL(mr_base, 0, kofi_mr_base(n->none))
NULL_CALL(mr_get, 0, kofi_mr_get(n->none))
NULL_CALL(mr_put, 0, (kofi_mr_put(NULL), 0))
NULL_CALL(mr_map, -EINVAL, kofi_mr_map(n->none, &n->vec, FI_REMOTE_READ, 0))
NULL_CALL(mr_map_vec, -EINVAL, kofi_mr_map(n->mr, NULL, FI_REMOTE_READ, 0))
NULL_CALL(mr_map_iov, -EINVAL, kofi_mr_map(n->mr, &n->vec, FI_REMOTE_READ, 0))
NULL_CALL(mr_unmap, -EINVAL, kofi_mr_unmap(n->none, NULL))
