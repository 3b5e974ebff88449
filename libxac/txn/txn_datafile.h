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
 * xac_commit_write_datafile -- what a transaction has written, as full images in a data file
 * that is durable then (txn_datafile.c).
 *
 * out  recp  the record that names it
 * ret  0 or an error; a file that is there then is removed as that of any other transaction
 */
int xac_commit_write_datafile(struct xac_env *env, const struct xac_txn *txn,
                              uint64_t serial, struct xac_xdatafile *recp);

/* xac_commit_remove_datafile -- of a transaction that was not published. */
void xac_commit_remove_datafile(struct xac_env *env, uint64_t serial);

/*
 * xac_commit_data_serial -- a bound: data files with smaller serials are of transactions
 * that have been published, or of none, and will never be of another.  Takes publish.
 */
uint64_t xac_commit_data_serial(struct xac_env *env);

#endif /* XAC_TXN_DATAFILE_H */
