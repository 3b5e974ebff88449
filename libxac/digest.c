/* SPDX-License-Identifier: MIT */
/*
 * digest.c -- see digest.h.
 */
#include <config.h>

#include "digest.h"

#include <errno.h>
#include <string.h>

#include <openssl/evp.h>
#include <xxhash.h>

#include <xac.h>

size_t
xac_digest_trailer(int kind)
{
    switch (kind) {
    case XAC_CHECKSUM_MD5:
        return 16;
    case XAC_CHECKSUM_SHA1:
        return 24;
    default:
        return 0;
    }
}

int
xac_digest(int kind, const void *data, size_t n, uint8_t out[XAC_DIGEST_MAX])
{
    unsigned len = 0;

    memset(out, 0, XAC_DIGEST_MAX);
    if (kind == XAC_CHECKSUM_XXH3) {
        uint64_t h = xac_xxh64(data, n);

        memcpy(out, &h, sizeof h);
        return 0;
    }
    xac_assert(kind == XAC_CHECKSUM_MD5 || kind == XAC_CHECKSUM_SHA1);
    if (EVP_Digest(data, n, out, &len, kind == XAC_CHECKSUM_MD5 ? EVP_md5() : EVP_sha1(),
                   NULL)
        != 1)
        return ENOTSUP;
    xac_assert(len <= XAC_DIGEST_MAX);
    return 0;
}

uint64_t
xac_xxh64(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}
