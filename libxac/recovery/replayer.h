/* SPDX-License-Identifier: MIT */
/*
 * replayer.h -- redo beside readers: what a standby redoes becomes versions, as commits do.
 *
 * WHAT      The replayer is the one participant of a standby's region that changes pages.  Each redone
 *           transaction is published as one commit, so queries see a state that the source has had.  The files get
 *           it by checkpoints that append nothing.
 * NOT HERE  Which records are redone (recover_redo.h); receiving log, and the master record (standby.h).
 * OWNER     struct xac_replayer belongs to the caller; its env is open, with this process as the replayer.
 * LOCK      takes publish, the lock of the files, checkpoint.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) A transaction is published after its block is durable here: what a query has seen stays.
 *   (2) Each is published once.  `applied` in the region says up to where that has been done; the commit
 *       that was under way when a replayer died counts if its number has been published (layout.h).
 *   (3) While a region is there, files are written by checkpoints only.
 *   (4) chain.begin_lsn is a mark of the source (slots.h) at or before the block that is redone.  full_since of a
 *       page moves there with a full image, or with a difference to the file if the file here has the page's
 *       newest contents.  So redo from full_since brings back a page that a reader keeps out of its file.
 */
#ifndef XAC_REPLAYER_H
#define XAC_REPLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/lineage.h"
#include "shared/env_state.h"

/* Where the entry of a page stands in the set of the running transaction. */
struct xac_replayed_place {
    uint64_t page_id;
    uint64_t index;
    uint64_t
        round; /* of the transaction; another one: the place is free                */
};

struct xac_replayer {
    struct xac_env *env;
    struct xac_replayed_place *place; /* hash table, a power of two                    */
    size_t n_places, n_used;
    uint64_t round;
};

/* A page that a record of the log names. */
struct xac_replayed_page {
    uint32_t file; /* id in the log, for messages                                       */
    uint32_t
        local; /* which file of the region it is                                    */
    uint64_t page;
    int fd; /* of the file                                                              */
};

/* xac_replayer_init -- ret 0 or ENOMEM; fini in any case. */
int xac_replayer_init(struct xac_replayer *p, struct xac_env *env);
void xac_replayer_fini(struct xac_replayer *p);

/* xac_replayer_applied -- up to where the log is redone in the region; by a replayer that has just come. */
uint64_t xac_replayer_applied(struct xac_env *env);

/* xac_replayer_durable -- the log here is durable up to there. */
void xac_replayer_durable(struct xac_replayer *p, uint64_t lsn);

/* xac_replayer_mark -- an XCHECKPT_BEGIN of the source at that LSN has been passed. */
void xac_replayer_mark(struct xac_replayer *p, uint64_t lsn);

/* xac_replayer_passed -- all up to there is redone. */
void xac_replayer_passed(struct xac_replayer *p, uint64_t lsn);

/* xac_replayer_turn -- what comes is of that generation; before xac_replayer_passed() its start (token.h). */
void xac_replayer_turn(struct xac_replayer *p, const struct xac_lineage_line *line);

/*
 * xac_replayer_file -- a file of the log, open, which is as long as the log says.
 *
 * in   path    as stored
 * out  localp  which file of the region it is
 * ret  0 or an error as of xac_registry_add().
 */
int xac_replayer_file(struct xac_replayer *p, const char *path, int fd, uint64_t length,
                      uint32_t *localp);

/* xac_replayer_begin -- a transaction; ret 0 or an error. */
int xac_replayer_begin(struct xac_replayer *p);

/*
 * xac_replayer_page -- the page that the running transaction changes, to be changed.
 *
 * in   flags   of the record: XAC_XDATA_FULL: its contents are not asked for
 * out  bytesp  the newest contents; they stay where they are until the end of the transaction
 * ret  0 or an error.
 */
int xac_replayer_page(struct xac_replayer *p, const struct xac_replayed_page *which,
                      uint32_t flags, uint8_t **bytesp);

/* xac_replayer_read -- the newest contents of a page, the running transaction included. */
int xac_replayer_read(struct xac_replayer *p, const struct xac_replayed_page *which,
                      uint8_t *to);

/*
 * xac_replayer_end -- publish the transaction, or with `lsn` 0 take it back.
 *
 * in   lsn, end, time_ns  of its block
 * ret  0 or an error; it is over in any case.
 */
int xac_replayer_end(struct xac_replayer *p, uint64_t lsn, uint64_t end,
                     uint64_t time_ns);

#endif /* XAC_REPLAYER_H */
