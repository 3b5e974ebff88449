/* SPDX-License-Identifier: MIT */
/*
 * digest.h -- checksums of log blocks: XXH3-64, MD5, SHA-1 (enum xac_checksum).
 *
 * The fast one comes from xxHash, the others from OpenSSL's libcrypto.
 */
#ifndef XAC_DIGEST_H
#define XAC_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/annot.h"

#define XAC_DIGEST_MAX 24 /* bytes, a multiple of 8 */

/* xac_bytes_are_zero -- of reserved fields and empty pages; mostly decided by the first bytes. */
static inline bool
xac_bytes_are_zero(const void *bytes, size_t n)
{
    const uint8_t *p = (const uint8_t *)bytes;

    xac_assert(n > 0);
    return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* xac_digest_trailer -- bytes that a digest takes behind the records: 0, 16 or 24. */
size_t xac_digest_trailer(int kind);

/*
 * xac_digest -- checksum of n bytes.
 *
 * in   kind  enum xac_checksum
 * out  out   8, 16 or 20 bytes of checksum, zero-padded to XAC_DIGEST_MAX
 * ret  0, or ENOTSUP if libcrypto refuses the algorithm (FIPS mode and MD5).
 */
int xac_digest(int kind, const void *data, size_t n, uint8_t out[XAC_DIGEST_MAX]);

/* A checksum that is fed piecemeal. */
struct xac_digester {
    struct XXH3_state_s *xxh; /* of the two one is NULL                              */
    struct evp_md_ctx_st *evp;
};

/*
 * xac_digest_begin -- then add, in order, and end; free in any case.
 *
 * ret  as xac_digest, or ENOMEM
 */
int xac_digest_begin(struct xac_digester *d, int kind);
void xac_digest_add(struct xac_digester *d, const void *data, size_t n);
void xac_digest_end(struct xac_digester *d, uint8_t out[XAC_DIGEST_MAX]);
void xac_digest_free(struct xac_digester *d);

/* xac_xxh64 -- XXH3-64 of n bytes. */
XAC_SIGSAFE uint64_t xac_xxh64(const void *data, size_t n);

#endif /* XAC_DIGEST_H */
