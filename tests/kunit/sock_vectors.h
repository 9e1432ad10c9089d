/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Captures of libfabric programs talking to each other, one direction each
 * (vectors/), and what is in them: a CM message as cmTYPE+DATA_LEN, a frame as
 * OP/FLAGS/SEGMENTS:HEADER+PAYLOAD, with "ack" for an acknowledgement's
 * segments.
 */
#define SOCK_VECTORS(X)							\
	X(app_fi_msg_pingpong_1_17_0_data_c2s,				\
	  "app-fi_msg_pingpong-1.17.0-data.c2s.bin",			\
	  "cm0+0 0/0/0:16+1 0/0/0:16+64 0/4/0:16+4 "			\
	  "0/0/ack:16+0")						\
	X(app_fi_msg_pingpong_1_17_0_data_s2c,				\
	  "app-fi_msg_pingpong-1.17.0-data.s2c.bin",			\
	  "cm1+0 0/0/0:16+1 0/0/0:16+64 0/4/0:16+4 "			\
	  "0/0/ack:16+0")						\
	X(app_fi_msg_pingpong_2_6_0_data_c2s,				\
	  "app-fi_msg_pingpong-2.6.0-data.c2s.bin",			\
	  "cm0+0 0/4/0:16+0 0/0/ack:16+0 0/0/0:16+64 "			\
	  "0/4/0:16+4 0/0/ack:16+0")					\
	X(app_fi_msg_pingpong_2_6_0_data_s2c,				\
	  "app-fi_msg_pingpong-2.6.0-data.s2c.bin",			\
	  "cm1+0 0/0/ack:16+0 0/4/0:16+0 0/0/0:16+64 "			\
	  "0/0/ack:16+0 0/4/0:16+4")					\
	X(app_fi_pingpong_msg_data_c2s,					\
	  "app-fi_pingpong-msg-data.c2s.bin",				\
	  "cm0+0 0/0/0:16+64 0/4/0:16+4 0/0/ack:16+0")			\
	X(app_fi_pingpong_msg_data_s2c,					\
	  "app-fi_pingpong-msg-data.s2c.bin",				\
	  "cm1+0 0/0/0:16+64 0/4/0:16+4 0/0/ack:16+0")			\
	X(app_fi_rma_bw_write_1_17_0_data_c2s,				\
	  "app-fi_rma_bw-write-1.17.0-data.c2s.bin",			\
	  "cm0+0 0/0/0:16+24 0/0/0:16+1 0/0/0:16+1 "			\
	  "4/0/1:40+64 4/0/1:40+64 0/4/0:16+4 "				\
	  "0/0/ack:16+0")						\
	X(app_fi_rma_bw_write_1_17_0_data_s2c,				\
	  "app-fi_rma_bw-write-1.17.0-data.s2c.bin",			\
	  "cm1+0 0/0/0:16+24 0/0/0:16+1 0/0/0:16+1 "			\
	  "4/0/1:40+64 4/0/1:40+64 0/4/0:16+4 "				\
	  "0/0/ack:16+0")						\
	X(app_fi_rma_bw_write_2_6_0_data_c2s,				\
	  "app-fi_rma_bw-write-2.6.0-data.c2s.bin",			\
	  "cm0+0 0/0/0:16+24 0/4/0:16+0 0/0/ack:16+0 "			\
	  "0/4/0:16+0 0/0/ack:16+0 4/0/1:40+64 "			\
	  "4/0/1:40+64 0/4/0:16+4 0/0/ack:16+0")			\
	X(app_fi_rma_bw_write_2_6_0_data_s2c,				\
	  "app-fi_rma_bw-write-2.6.0-data.s2c.bin",			\
	  "cm1+0 0/0/0:16+24 0/0/ack:16+0 0/4/0:16+0 "			\
	  "0/0/ack:16+0 0/4/0:16+0 4/0/1:40+64 "			\
	  "4/0/1:40+64 0/0/ack:16+0 0/4/0:16+4")			\
	X(cm_connect_accept_data_c2s,					\
	  "cm-connect-accept-data.c2s.bin",				\
	  "cm0+17")							\
	X(cm_connect_accept_data_s2c,					\
	  "cm-connect-accept-data.s2c.bin",				\
	  "cm1+11")							\
	X(cm_connect_accept_nodata_c2s,					\
	  "cm-connect-accept-nodata.c2s.bin",				\
	  "cm0+0")							\
	X(cm_connect_accept_nodata_s2c,					\
	  "cm-connect-accept-nodata.s2c.bin",				\
	  "cm1+0")							\
	X(cm_connect_reject_data_c2s,					\
	  "cm-connect-reject-data.c2s.bin",				\
	  "cm0+17")							\
	X(cm_connect_reject_data_s2c,					\
	  "cm-connect-reject-data.s2c.bin",				\
	  "cm6+12")							\
	X(cm_connect_reject_nodata_c2s,					\
	  "cm-connect-reject-nodata.c2s.bin",				\
	  "cm0+0")							\
	X(cm_connect_reject_nodata_s2c,					\
	  "cm-connect-reject-nodata.s2c.bin",				\
	  "cm6+0")							\
	X(msg_inject_write8_c2s,					\
	  "msg-inject-write8.c2s.bin",					\
	  "4/0/1:40+8")							\
	X(msg_inject_writedata8_c2s,					\
	  "msg-inject-writedata8.c2s.bin",				\
	  "4/1/1:48+8")							\
	X(msg_inject8_c2s,						\
	  "msg-inject8.c2s.bin",					\
	  "0/0/0:16+8")							\
	X(msg_read_badaddr_c2s,						\
	  "msg-read-badaddr.c2s.bin",					\
	  "2/0/1:40+0")							\
	X(msg_read_write_mix_c2s,					\
	  "msg-read-write-mix.c2s.bin",					\
	  "2/0/1:40+0 4/0/1:40+16 0/0/0:16+4 2/0/1:40+0")		\
	X(msg_read_write_mix_s2c,					\
	  "msg-read-write-mix.s2c.bin",					\
	  "3/0/0:16+16 3/0/0:16+8")					\
	X(msg_read32_c2s,						\
	  "msg-read32.c2s.bin",						\
	  "2/0/1:40+0")							\
	X(msg_read32_s2c,						\
	  "msg-read32.s2c.bin",						\
	  "3/0/0:16+32")						\
	X(msg_readmsg_2rma_c2s,						\
	  "msg-readmsg-2rma.c2s.bin",					\
	  "2/0/2:64+0")							\
	X(msg_readmsg_2rma_s2c,						\
	  "msg-readmsg-2rma.s2c.bin",					\
	  "3/0/0:16+24")						\
	X(msg_send_dc_c2s,						\
	  "msg-send-dc.c2s.bin",					\
	  "0/4/0:16+16")						\
	X(msg_send_dc_s2c,						\
	  "msg-send-dc.s2c.bin",					\
	  "0/0/ack:16+0")						\
	X(msg_send_tc_c2s,						\
	  "msg-send-tc.c2s.bin",					\
	  "0/4/0:16+16")						\
	X(msg_send_tc_s2c,						\
	  "msg-send-tc.s2c.bin",					\
	  "0/0/ack:16+0")						\
	X(msg_send0_c2s,						\
	  "msg-send0.c2s.bin",						\
	  "0/0/0:16+0")							\
	X(msg_send16_c2s,						\
	  "msg-send16.c2s.bin",						\
	  "0/0/0:16+16")						\
	X(msg_senddata_dc_iov2_c2s,					\
	  "msg-senddata-dc-iov2.c2s.bin",				\
	  "0/5/0:24+16")						\
	X(msg_senddata_dc_iov2_s2c,					\
	  "msg-senddata-dc-iov2.s2c.bin",				\
	  "0/0/ack:16+0")						\
	X(msg_senddata16_c2s,						\
	  "msg-senddata16.c2s.bin",					\
	  "0/1/0:24+16")						\
	X(msg_tinject_c2s,						\
	  "msg-tinject.c2s.bin",					\
	  "1/0/0:24+5")							\
	X(msg_trunc_recv_dc_c2s,					\
	  "msg-trunc-recv-dc.c2s.bin",					\
	  "0/4/0:16+64")						\
	X(msg_trunc_recv_dc_s2c,					\
	  "msg-trunc-recv-dc.s2c.bin",					\
	  "0/0/ack:16+0")						\
	X(msg_trunc_recv_c2s,						\
	  "msg-trunc-recv.c2s.bin",					\
	  "0/0/0:16+64 0/0/0:16+8")					\
	X(msg_tsend_c2s,						\
	  "msg-tsend.c2s.bin",						\
	  "1/0/0:24+40")						\
	X(msg_tsenddata_c2s,						\
	  "msg-tsenddata.c2s.bin",					\
	  "1/1/0:32+40")						\
	X(msg_tsendmsg_dc_c2s,						\
	  "msg-tsendmsg-dc.c2s.bin",					\
	  "1/5/0:32+12")						\
	X(msg_tsendmsg_dc_s2c,						\
	  "msg-tsendmsg-dc.s2c.bin",					\
	  "0/0/ack:16+0")						\
	X(msg_unexp_send_c2s,						\
	  "msg-unexp-send.c2s.bin",					\
	  "0/0/0:16+64 4/0/1:40+8")					\
	X(msg_write_badkey_dc_c2s,					\
	  "msg-write-badkey-dc.c2s.bin",				\
	  "4/4/1:40+8")							\
	X(msg_write_badkey_c2s,						\
	  "msg-write-badkey.c2s.bin",					\
	  "4/0/1:40+32")						\
	X(msg_write0_c2s,						\
	  "msg-write0.c2s.bin",						\
	  "4/0/1:40+0")							\
	X(msg_write32_c2s,						\
	  "msg-write32.c2s.bin",					\
	  "4/0/1:40+32")						\
	X(msg_writedata32_c2s,						\
	  "msg-writedata32.c2s.bin",					\
	  "4/1/1:48+32")						\
	X(msg_writemsg_2rma_dc_c2s,					\
	  "msg-writemsg-2rma-dc.c2s.bin",				\
	  "4/4/2:64+24")						\
	X(msg_writemsg_2rma_dc_s2c,					\
	  "msg-writemsg-2rma-dc.s2c.bin",				\
	  "0/0/ack:16+0")						\
	X(msg_writemsg_commit_c2s,					\
	  "msg-writemsg-commit.c2s.bin",				\
	  "4/8/1:40+8")							\
	X(msg_writemsg_commit_s2c,					\
	  "msg-writemsg-commit.s2c.bin",				\
	  "0/0/ack:16+0")
