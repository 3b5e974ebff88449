/* SPDX-License-Identifier: MIT */
/*
 * txn_datafile.h -- data files of large transactions: pages that are too many for the log.
 */
#ifndef XAC_TXN_DATAFILE_H
#define XAC_TXN_DATAFILE_H

#include <stdint.h>

struct xac_env;
struct xac_txn;
struct xac_xdatafile;

/*
 * xac_commit_write_datafile -- write all pages that a transaction has written, as full images, to
 * a data file, and make it durable (txn_datafile.c).
 *
 * out  recp  the record that names it
 * ret  0 or an error; if a file exists then, it is removed later like that of others
 */
int xac_commit_write_datafile(struct xac_env *env, const struct xac_txn *txn,
                              uint64_t serial, struct xac_xdatafile *recp);

/* xac_commit_remove_datafile -- of a transaction that was not published. */
void xac_commit_remove_datafile(struct xac_env *env, uint64_t serial);

/*
 * xac_commit_data_serial -- a bound: data files with smaller serials belong to transactions that
 * have been published, or to none, and never to a later one.  Takes publish.
 */
uint64_t xac_commit_data_serial(struct xac_env *env);

#endif /* XAC_TXN_DATAFILE_H */
