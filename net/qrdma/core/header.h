/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet headers of QUIC version 1: parse, build, find what header protection needs
 * (RFC 9000 s17, RFC 8999 for what all versions share, RFC 9001 s5.4).
 *
 * Owns: nothing; pure functions over the bytes of one datagram.
 * Called by: demultiplexing (connection ids only), conn.c, packer.c. Context: any. Lock: none.
 *
 * What a receiver does with a datagram:
 *
 *	for (; len; data += hdr.len, len -= hdr.len) {
 *		if (qrdma_hdr_parse(&hdr, data, len) != QRDMA_HDR_OK)
 *			continue;	(after counting; hdr.len is what to skip)
 *		mask from the 16 bytes at qrdma_hdr_sample(&hdr, data);
 *		qrdma_hdr_unprotect(&hdr, data, mask);
 *		open the packet; refuse it when qrdma_hdr_reserved(&hdr);
 *	}
 */
#ifndef QRDMA_CORE_HEADER_H
#define QRDMA_CORE_HEADER_H

#include "env.h"
#include "cursor.h"

#define QRDMA_QUIC_V1		1U
#define QRDMA_CID_LEN		8	/* our own connection ids */
#define QRDMA_CID_MAX		20	/* RFC 9000 s17.2 */
#define QRDMA_DATAGRAM_MIN	512	/* bytes: a path that takes less is no path */
#define QRDMA_RESET_TOKEN_LEN	16	/* RFC 9000 s10.3 */
#define QRDMA_RESET_LEN_MIN	21	/* smallest stateless reset, RFC 9000 s10.3 */
#define QRDMA_RESET_LIKE	(QRDMA_CID_LEN + 22) /* bytes of a packet at least, s10.3 */
#define QRDMA_RETRY_TAG_LEN	16	/* RFC 9001 s5.8 */
#define QRDMA_HP_SAMPLE_LEN	16	/* RFC 9001 s5.4.2 */

/* first byte (RFC 9000 s17.2, s17.3.1); the bits of 0x0f (long) or 0x1f (short) are protected */
#define QRDMA_HDR_LONG		0x80
#define QRDMA_HDR_FIXED		0x40
#define QRDMA_HDR_SPIN		0x20	/* short */
#define QRDMA_HDR_PHASE		0x04	/* short */
#define QRDMA_HDR_SHORT_RESERVED 0x18	/* short, RFC 9000 s17.3.1 */
#define QRDMA_HDR_LONG_RESERVED	0x0c	/* long, RFC 9000 s17.2 */

/**
 * struct qrdma_cid - a connection id
 * @len: bytes in use, 0..QRDMA_CID_MAX
 * @data: the bytes; those behind @len have no meaning
 */
struct qrdma_cid {
	u8 len;
	u8 data[QRDMA_CID_MAX];
};

/**
 * qrdma_cid_set() - from bytes of a packet
 * @cid: result; zero behind its bytes, so that it may be the key of a hash
 * @data: the bytes
 * @len: number of them, up to QRDMA_CID_MAX
 */
static inline void qrdma_cid_set(struct qrdma_cid *cid, const u8 *data, u8 len)
{
	memset(cid, 0, sizeof(*cid));
	cid->len = len;
	memcpy(cid->data, data, len);
}

static inline bool qrdma_cid_equal(const struct qrdma_cid *a, const struct qrdma_cid *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

/** enum qrdma_pkt_type - the first four are the values on the wire */
enum qrdma_pkt_type {
	QRDMA_PKT_INITIAL,
	QRDMA_PKT_0RTT,
	QRDMA_PKT_HANDSHAKE,
	QRDMA_PKT_RETRY,
	QRDMA_PKT_VERSION_NEG,	/* Version Negotiation */
	QRDMA_PKT_SHORT,	/* 1-RTT */
};

/**
 * enum qrdma_hdr_verdict - what came of a packet
 * @QRDMA_HDR_OK: parsed
 * @QRDMA_HDR_TRUNCATED: ends inside its header, or its Length field says more than there is
 * @QRDMA_HDR_FIXED_BIT: fixed bit is 0 (RFC 9000 s17.2, s17.3.1: discard); zeros behind the last
 *	packet of a datagram look so, too
 * @QRDMA_HDR_VERSION: long header of a version that is not ours; the connection ids (up to 255
 *	bytes) and the version are valid, enough for a Version Negotiation packet
 * @QRDMA_HDR_CID_LEN: connection id over 20 bytes (RFC 9000 s17.2: drop)
 * @QRDMA_HDR_NO_SAMPLE: too short for a header protection sample (RFC 9001 s5.4.2: discard)
 * @QRDMA_HDR_RETRY: Retry without a token (RFC 9000 s17.2.5.2: discard)
 */
enum qrdma_hdr_verdict {
	QRDMA_HDR_OK,
	QRDMA_HDR_TRUNCATED,
	QRDMA_HDR_FIXED_BIT,
	QRDMA_HDR_VERSION,
	QRDMA_HDR_CID_LEN,
	QRDMA_HDR_NO_SAMPLE,
	QRDMA_HDR_RETRY,
};

/**
 * struct qrdma_hdr - one packet header, parsed or to be built
 * @type: enum qrdma_pkt_type
 * @first: first byte; protected as long as qrdma_hdr_unprotect() was not called
 * @pn_len: bytes of packet number, 1..4; parsed: 0 before qrdma_hdr_unprotect()
 * @dcid_len: bytes at @dcid
 * @scid_len: bytes at @scid, 0 for a short header
 * @version: 0 in Version Negotiation
 * @pn_off: where the packet number is, from the first byte of the packet; 0 when there is none
 * @len: bytes of the datagram that the packet takes; of a refused one: bytes to skip
 * @token_len: bytes at @token
 * @pn: truncated packet number after qrdma_hdr_unprotect(); full one when building
 * @dcid: destination connection id
 * @scid: source connection id
 * @token: token of Initial and Retry, list of versions (4 bytes each) of Version Negotiation
 * @tag: Retry: the integrity tag, which is the end of the packet
 *
 * Pointers lead into the datagram (parsed) or to memory of the caller (built). Dies with its
 * owner's stack frame.
 */
struct qrdma_hdr {
	u8 type;
	u8 first;
	u8 pn_len;
	u8 dcid_len;
	u8 scid_len;
	u32 version;
	u32 pn_off;
	u32 len;
	u32 token_len;
	u64 pn;
	const u8 *dcid;
	const u8 *scid;
	const u8 *token;
	const u8 *tag;
};

/**
 * qrdma_hdr_parse_long() - parse a packet whose first byte has QRDMA_HDR_LONG set
 * @hdr: what was found, see qrdma_hdr_parse()
 * @data: first byte
 * @len: bytes of datagram from there, 1 at least
 *
 * Return: what came of it.
 */
enum qrdma_hdr_verdict qrdma_hdr_parse_long(struct qrdma_hdr *hdr, const u8 *data, u32 len);

/**
 * qrdma_hdr_parse() - parse the header of the packet at the beginning of some bytes
 * @hdr: what was found; complete for QRDMA_HDR_OK, else @hdr->len is set and what
 *	enum qrdma_hdr_verdict says. A short header of QRDMA_HDR_NO_SAMPLE has its dcid set: it
 *	may be a stateless reset.
 * @data: first byte
 * @len: bytes of datagram from there, 1 at least
 *
 * A short header carries a connection id of ours, QRDMA_CID_LEN bytes. Its protected bits are not
 * looked at. In a datagram of several packets all must carry the first one's destination
 * connection id (RFC 9000 s12.2): the caller compares with qrdma_hdr_same_dcid().
 *
 * Return: what came of it.
 */
static inline enum qrdma_hdr_verdict qrdma_hdr_parse(struct qrdma_hdr *hdr, const u8 *data, u32 len)
{
	if (data[0] & QRDMA_HDR_LONG)
		return qrdma_hdr_parse_long(hdr, data, len);

	/* RFC 9000 s17.3.1 */
	hdr->type = QRDMA_PKT_SHORT;
	hdr->first = data[0];
	hdr->pn_len = 0;
	hdr->dcid_len = QRDMA_CID_LEN;
	hdr->scid_len = 0;
	hdr->version = QRDMA_QUIC_V1;
	hdr->pn_off = 1 + QRDMA_CID_LEN;
	hdr->len = len;
	hdr->token_len = 0;
	hdr->dcid = data + 1;
	hdr->scid = NULL;
	hdr->token = NULL;
	hdr->tag = NULL;
	if (unlikely(len < 1 + QRDMA_CID_LEN))
		return QRDMA_HDR_TRUNCATED;
	if (unlikely(!(data[0] & QRDMA_HDR_FIXED)))
		return QRDMA_HDR_FIXED_BIT;
	if (unlikely(len < 1 + QRDMA_CID_LEN + QRDMA_PN_LEN_MAX + QRDMA_HP_SAMPLE_LEN))
		return QRDMA_HDR_NO_SAMPLE;
	return QRDMA_HDR_OK;
}

/** qrdma_hdr_same_dcid() - do two packets of a datagram go to the same connection id? */
static inline bool qrdma_hdr_same_dcid(const struct qrdma_hdr *a, const struct qrdma_hdr *b)
{
	return a->dcid_len == b->dcid_len && !memcmp(a->dcid, b->dcid, a->dcid_len);
}

/**
 * qrdma_hdr_sample() - where the header protection sample is (RFC 9001 s5.4.2)
 * @hdr: parsed header of a packet with packet number
 * @pkt: first byte of the packet
 *
 * Return: the first of QRDMA_HP_SAMPLE_LEN bytes inside the packet.
 */
static inline const u8 *qrdma_hdr_sample(const struct qrdma_hdr *hdr, const u8 *pkt)
{
	return pkt + hdr->pn_off + QRDMA_PN_LEN_MAX;
}

/**
 * qrdma_hdr_unprotect() - take header protection off (RFC 9001 s5.4.1)
 * @hdr: parsed header; first, pn_len and pn are set
 * @pkt: first byte of the packet, edited in place
 * @mask: 5 bytes
 */
static inline void qrdma_hdr_unprotect(struct qrdma_hdr *hdr, u8 *pkt, const u8 *mask)
{
	u32 i;

	pkt[0] ^= mask[0] & (pkt[0] & QRDMA_HDR_LONG ? 0x0f : 0x1f);
	hdr->first = pkt[0];
	hdr->pn_len = (pkt[0] & 3) + 1;
	for (i = 0; i < hdr->pn_len; i++)
		pkt[hdr->pn_off + i] ^= mask[1 + i];
	hdr->pn = qrdma_pn_load(pkt + hdr->pn_off, hdr->pn_len);
}

/**
 * qrdma_hdr_protect() - put header protection on (RFC 9001 s5.4.1)
 * @pkt: first byte of the sealed packet, edited in place
 * @pn_off: offset of the packet number
 * @pn_len: its length
 * @mask: 5 bytes
 */
static inline void qrdma_hdr_protect(u8 *pkt, u32 pn_off, u32 pn_len, const u8 *mask)
{
	u32 i;

	pkt[0] ^= mask[0] & (pkt[0] & QRDMA_HDR_LONG ? 0x0f : 0x1f);
	for (i = 0; i < pn_len; i++)
		pkt[pn_off + i] ^= mask[1 + i];
}

/**
 * qrdma_hdr_reserved() - are reserved bits set? (RFC 9000 s17.2, s17.3.1)
 * @hdr: header after qrdma_hdr_unprotect()
 *
 * To be acted on only once the packet was opened: before, it would tell an attacker about the
 * header protection key (RFC 9001 s9.5).
 *
 * Return: true: a PROTOCOL_VIOLATION.
 */
static inline bool qrdma_hdr_reserved(const struct qrdma_hdr *hdr)
{
	return hdr->first & (hdr->type == QRDMA_PKT_SHORT ? QRDMA_HDR_SHORT_RESERVED :
							 QRDMA_HDR_LONG_RESERVED);
}

/**
 * qrdma_hdr_build_short() - write a short header with its packet number (RFC 9000 s17.3.1)
 * @w: where
 * @dcid: the peer's connection id
 * @flags: QRDMA_HDR_SPIN, QRDMA_HDR_PHASE
 * @pn: full packet number
 * @pn_len: from qrdma_pn_len()
 *
 * The packet number is at offset 1 + @dcid->len.
 *
 * Return: false when there is no room.
 */
static inline bool qrdma_hdr_build_short(struct qrdma_writer *w, const struct qrdma_cid *dcid,
					 u8 flags, u64 pn, u32 pn_len)
{
	u8 *p = w->pos;

	if (unlikely(qrdma_writer_room(w) < 1 + dcid->len + pn_len))
		return false;
	*p++ = QRDMA_HDR_FIXED | flags | (pn_len - 1);
	memcpy(p, dcid->data, dcid->len);
	p += dcid->len;
	qrdma_pn_store(p, pn, pn_len);
	w->pos = p + pn_len;
	return true;
}

/**
 * qrdma_hdr_long_size() - how much will qrdma_hdr_build_long() write?
 * @hdr: type, dcid_len, scid_len, token_len (Initial), pn_len are looked at
 *
 * Return: bytes.
 */
u32 qrdma_hdr_long_size(const struct qrdma_hdr *hdr);

/**
 * qrdma_hdr_build_long() - write the header of an Initial, 0-RTT or Handshake packet up to and with
 *	its packet number (RFC 9000 s17.2)
 * @w: where
 * @hdr: in: type, dcid, scid, token (Initial), pn, pn_len; out: first, version, pn_off
 *
 * The Length field takes two bytes and holds 0 until qrdma_hdr_set_length().
 *
 * Return: false when there is no room.
 */
bool qrdma_hdr_build_long(struct qrdma_writer *w, struct qrdma_hdr *hdr);

/**
 * qrdma_hdr_set_length() - complete a header made by qrdma_hdr_build_long()
 * @hdr: the header
 * @pkt: first byte of the packet
 * @payload_len: bytes behind the packet number, tag included; at most 16379
 */
static inline void qrdma_hdr_set_length(const struct qrdma_hdr *hdr, u8 *pkt, u32 payload_len)
{
	qrdma_store_be16(pkt + hdr->pn_off - 2, 0x4000 | (hdr->pn_len + payload_len));
}

/**
 * qrdma_hdr_build_retry() - write a Retry packet without its tag (RFC 9000 s17.2.5)
 * @w: where; the tag goes to @w->pos afterwards, there is room for it
 * @hdr: dcid, scid, token
 * @unused: four bits that mean nothing
 *
 * Return: false when there is no room.
 */
bool qrdma_hdr_build_retry(struct qrdma_writer *w, const struct qrdma_hdr *hdr, u8 unused);

/**
 * qrdma_hdr_build_version_neg() - offer version 1 (Version Negotiation, RFC 9000 s17.2.1)
 * @w: where the packet goes
 * @rx: header of the packet that is answered; its verdict was QRDMA_HDR_VERSION
 * @unused: seven random bits that mean nothing
 *
 * Return: false when there is no room.
 */
bool qrdma_hdr_build_version_neg(struct qrdma_writer *w, const struct qrdma_hdr *rx, u8 unused);

/**
 * qrdma_hdr_build_reset() - write a stateless reset (RFC 9000 s10.3)
 * @w: where
 * @len: bytes of the datagram, QRDMA_RESET_LEN_MIN at least; smaller than the one answered
 * @random: @len - QRDMA_RESET_TOKEN_LEN random bytes
 * @token: QRDMA_RESET_TOKEN_LEN bytes
 *
 * Return: false when there is no room.
 */
bool qrdma_hdr_build_reset(struct qrdma_writer *w, u32 len, const u8 *random, const u8 *token);

/**
 * qrdma_hdr_reset_token() - where the token is if this is a stateless reset (RFC 9000 s10.3.1)
 * @data: first byte of the datagram
 * @len: its length
 *
 * The form of the header does not matter (RFC 9000 s10.3).
 *
 * Return: the token, to be compared in constant time; NULL when the datagram cannot be a reset.
 */
static inline const u8 *qrdma_hdr_reset_token(const u8 *data, u32 len)
{
	if (len < QRDMA_RESET_LEN_MIN)
		return NULL;
	return data + len - QRDMA_RESET_TOKEN_LEN;
}

#endif /* QRDMA_CORE_HEADER_H */
