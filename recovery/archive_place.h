/* SPDX-License-Identifier: MIT */
/*
 * archive_place.h -- the place that an archiver has in DEST, and what it notes of it in DIR.
 *
 * WHAT      The directory DIR/xac.archiving-HASH: lock, claim, the newest manifest, objects to be removed; the
 *           claim in DEST; removing what no manifest names.
 * NOT HERE  Shipping (archive_ship.h).
 * OWNER     struct archive_place belongs to the archiver.
 *
 * INVARIANTS
 *   (1) The claim in DEST is there, and no other, before anything else is put.
 *   (2) The manifest that is noted is one that was there.
 */
#ifndef XAC_ARCHIVE_PLACE_H
#define XAC_ARCHIVE_PLACE_H

#include "archive_manifest.h"
#include "archive_store.h"

#define ARCHIVE_STATE_PREFIX "xac.archiving-"

/* An object that no manifest names stays so long, for those who read an older one. */
#define ARCHIVE_LINGER_NS (UINT64_C(86400) * 1000000000)

struct archive_place {
    const char *dir;
    int dirfd; /* of the environment; not owned                                        */
    char name[64]; /* of the directory of notes                                        */
    int statefd, lockfd;
    char claim[33];                 /* 16 random bytes, in hexadecimal                 */
    bool has_claim;                 /* in DEST                                         */
    uint64_t number;                /* of the newest manifest that we know; 0 none     */
    uint8_t sha[ARCHIVE_SHA_BYTES]; /* of it                                           */
};

/*
 * archive_place_open -- take the place: lock, notes, stage, claim.
 *
 * ret  0; EBUSY: another archiver has it; errno with words.  Close it in any case.
 */
int archive_place_open(struct archive_place *p, struct archive_store *s, int dirfd,
                       const char *dir);

/* archive_place_close -- the claim goes. */
void archive_place_close(struct archive_place *p, struct archive_store *s);

/*
 * archive_place_read -- what the archive holds.
 *
 * A manifest newer than the noted one that is not whole has been torn: the noted one counts.
 * out  numberp  the newest number that is taken
 * ret  as archive_read(); ESTALE: it lacks the manifest that was noted.
 */
int archive_place_read(struct archive_place *p, struct archive_store *s,
                       struct archive *a, uint64_t *numberp);

/* archive_place_note -- the newest manifest is there; ret 0 or errno with words. */
int archive_place_note(struct archive_place *p, uint64_t number,
                       const uint8_t sha[ARCHIVE_SHA_BYTES]);

/*
 * archive_place_clean -- remove the objects that no manifest has named since ARCHIVE_LINGER_NS, and note those
 * that none names now.  Nothing is under way.
 */
int archive_place_clean(struct archive_place *p, struct archive_store *s,
                        const struct archive *a, uint64_t now_ns);

#endif /* XAC_ARCHIVE_PLACE_H */
