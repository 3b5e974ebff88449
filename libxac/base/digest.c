/* SPDX-License-Identifier: MIT */
/*
 * digest.c -- see digest.h.
 */
#include <config.h>

#include "base/digest.h"

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

int
xac_digest_begin(struct xac_digester *d, int kind)
{
    *d = (struct xac_digester){.xxh = NULL};
    if (kind == XAC_CHECKSUM_XXH3) {
        d->xxh = XXH3_createState();
        return d->xxh != NULL && XXH3_64bits_reset(d->xxh) == XXH_OK ? 0 : ENOMEM;
    }
    xac_assert(kind == XAC_CHECKSUM_MD5 || kind == XAC_CHECKSUM_SHA1);
    d->evp = EVP_MD_CTX_new();
    if (d->evp == NULL)
        return ENOMEM;
    return EVP_DigestInit_ex(d->evp, kind == XAC_CHECKSUM_MD5 ? EVP_md5() : EVP_sha1(),
                             NULL)
                   == 1
               ? 0
               : ENOTSUP;
}

void
xac_digest_add(struct xac_digester *d, const void *data, size_t n)
{
    if (d->xxh != NULL)
        (void)XXH3_64bits_update(d->xxh, data, n);
    else
        (void)EVP_DigestUpdate(d->evp, data, n);
}

void
xac_digest_end(struct xac_digester *d, uint8_t out[XAC_DIGEST_MAX])
{
    memset(out, 0, XAC_DIGEST_MAX);
    if (d->xxh != NULL) {
        uint64_t h = XXH3_64bits_digest(d->xxh);

        memcpy(out, &h, sizeof h);
    } else {
        (void)EVP_DigestFinal_ex(d->evp, out, NULL);
    }
}

void
xac_digest_free(struct xac_digester *d)
{
    XXH3_freeState(d->xxh);
    EVP_MD_CTX_free(d->evp);
}

uint64_t
xac_xxh64(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}
