/* SPDX-License-Identifier: MIT */
/*
 * recover_data.h -- reading the data file of a large transaction, in bounded memory.
 */
#ifndef XAC_RECOVER_DATA_H
#define XAC_RECOVER_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "log/log_format.h"
#include "log/recover_scan.h"

/* Called for each record; ret 0, or an error that ends the reading. */
typedef int (*xac_datafile_fn)(void *arg, const struct xac_xdata *rec);

/*
 * xac_datafile_verify -- compare length and digest with those in the log.
 *
 * out  okp    false if the file is missing, short or has other bytes
 * out  place  if not ok: file, offset and reason
 * ret  0; ENOMEM, ENOTSUP (digest not available) or another errno value.
 */
int xac_datafile_verify(int dirfd, uint32_t generation, const struct xac_xdatafile *rec,
                        bool *okp, struct xac_place *place);

/*
 * xac_datafile_read -- call fn for each record of a verified data file.
 *
 * out  okp    false if the bytes are no chain of n_records XDATA records
 * out  place  if not ok: file, offset and reason
 * ret  0, what fn returned if that was not 0, or an errno value.
 */
int xac_datafile_read(int dirfd, uint32_t generation, const struct xac_xdatafile *rec,
                      xac_datafile_fn fn, void *arg, bool *okp, struct xac_place *place);

#endif /* XAC_RECOVER_DATA_H */
