/* SPDX-License-Identifier: MIT */
/*
 * layout.h -- all types that lie in the control region: participants and files, versions,
 * transactions, the chain of commits, and the head, which leads to all others.  The page table
 * is in ptab.h, arrays and free lists in shm.h, locks in lock.h, the state of the log in log.h.
 *
 * The first participant makes the region; it is complete before it gets its name.  The last
 * participant deletes it.  Without a live participant it is worth nothing: after a crash of all
 * of them the region is deleted and the log decides.
 *
 * RULES
 *   (1) Names in shared memory are offsets and indexes, never addresses.
 *   (2) A field is fixed, or guarded by the lock that its comment names, or atomic.  The comment
 *       beside it says who may store to it; the comment at each access says what it pairs with.
 *   (3) A change here raises XAC_CONTROL_VERSION: another version of the library is refused.
 * What each part promises is in the header that the section names.
 */
#ifndef XAC_LAYOUT_H
#define XAC_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/annot.h"
#include "base/identity.h"
#include "base/lock.h"
#include "base/times.h"
#include "log/log.h"
#include "shared/ptab.h"
#include "shared/shm.h"

/* ---- Participants and files (registry.h) --------------------------------------- */

enum xac_participant_state {
    XAC_PART_FREE = 0,
    XAC_PART_ATTACHED = 1
};

struct xac_participant {
    xac_shared _Atomic uint32_t state; /* changed with the gate or the reap lock held */
    uint32_t pid;                      /* in its own PID namespace                     */
    uint64_t pid_namespace;            /* inode of /proc/self/ns/pid, 0 unknown        */
    /* Inode of /proc/self/ns/time, 0 unknown, and field 22 of /proc/PID/stat, 0 unknown: the
       same process has another start time when it is looked at from another time namespace. */
    uint64_t time_namespace;
    uint64_t start_time;
    uint64_t region_bytes; /* that it has addresses for; with the gate held            */
    uint64_t frames_max;   /* of the version store, likewise                           */
    xac_shared _Atomic uint32_t n_contexts; /* see thread.h; gate held                */
    uint32_t is_reader;                     /* fixed while attached                  */
    /* 1: its process has gone on with another program and has come again, as another
       participant.  Gate held; 0 when a process comes. */
    xac_shared _Atomic uint32_t is_over;
    xac_shared _Atomic uint32_t
        engine; /* enum xac_engine_kind; its owner's; for people */
    /* A backup needs the log from this LSN on; 0 no backup.  Stored by its owner, read by
       archiving. */
    xac_shared _Atomic uint64_t log_pin;
    uint64_t holds; /* offset of its first hold of a file, 0 none; files lock held     */
};

/* A participant has mapped a file: one hold for each mapping; files lock held. */
struct xac_hold {
    uint64_t next, prev; /* offsets, 0 none                                            */
    uint64_t file;
};

enum xac_file_state {
    XAC_FILE_NEW = 0, /* being registered                                              */
    XAC_FILE_KNOWN = 1,
    XAC_FILE_GONE = 2, /* forgotten; its name may belong to another file               */
    XAC_FILE_LEFT = 3  /* nothing is left of it                                        */
};

struct xac_file {
    xac_shared _Atomic uint64_t root;   /* page table (ptab.h)                         */
    xac_shared _Atomic uint64_t length; /* bytes: the longest mapping so far           */
    struct xac_identity who;            /* fixed                                       */
    uint64_t path;                      /* offset of the NUL-terminated path; fixed    */
    uint32_t path_len;                  /* fixed                                       */
    xac_shared _Atomic uint32_t state;  /* enum xac_file_state; files lock held        */
    uint64_t idle_lsn; /* end of the log when it was unmapped last; files lock         */
    uint32_t next_by_path, next_by_inode; /* ids, in the index; files lock             */
    uint32_t is_unnamed; /* invariant (2); files lock                                  */
    /* 1: a checkpoint could not reach the file, so versions below its bound are not in the file
       yet, and must still be written; checkpoint lock. */
    uint32_t is_behind;
    xac_shared _Atomic uint64_t
        address; /* where it is mapped, see address.h; 0 unknown */
    /* Pages of the file from here on are zeros: they were added after the file was registered,
       and no checkpoint has written them or a page behind them.  Only grows; stored under the
       checkpoint lock, before the write. */
    xac_shared _Atomic uint64_t blank_from;
};

/* Heads of chains of ids, by path and by inode: two arrays of the same length, in one block. */
struct xac_file_index {
    /* Offset of 2 * n numbers of 32 bits, and in its low bits the logarithm of n.  It is one
       word, so that a death leaves both or neither; 0 none. */
    uint64_t buckets;
    uint64_t n_files; /* in it                                                         */
};

#define XAC_FILE_INDEX_SIZE_MASK UINT64_C(63) /* of `buckets`: the rest is an offset */

/* ---- Versions (version.h) ------------------------------------------------------ */

enum xac_vslot_state {
    XAC_VSLOT_FREE = 0,
    XAC_VSLOT_TAKEN = 1,   /* low bits: transaction slot                              */
    XAC_VSLOT_VERSION = 2, /* low bits: its commit number                             */
    XAC_VSLOT_LIMBO = 3,   /* low bits: number of the unlink that unlinked it           */
};

/* Shared description of a version slot; their numbers start at 1, 0 means the page's file. */
struct xac_vslot {
    xac_shared _Atomic uint64_t word; /* state << 56 | slot, commit or unlink          */
    xac_shared _Atomic uint64_t next; /* next older version, 0 the file              */
    xac_shared _Atomic uint64_t commit;  /* number that published it                    */
    xac_shared _Atomic uint64_t page;    /* offset of its struct xac_page               */
    xac_shared _Atomic uint64_t time_ns; /* of that commit: struct xac_txn             */
};

/* Shared state of the store, in the control region. */
struct xac_versions {
    struct xac_lock grow;   /* rank XAC_RANK_GROW                         */
    struct xac_array slots; /* struct xac_vslot; count: version slots there are  */
    xac_shared _Atomic uint64_t
        limbo; /* version slots in LIMBO, about                     */
    /* First version slot that lies in the second buffer file (environment directory) because
       the first one could not or should not grow; 0 while all lie in the first. */
    xac_shared _Atomic uint64_t spill;
    /* Most version slots in the first file, which takes memory; UINT64_MAX: any number.  Only
       falls; stored with the gate held, relaxed. */
    xac_shared _Atomic uint64_t share;
    /* Most version slots, so that every participant can reach them all; under grow.            */
    uint64_t frames_max;
    /* Version slots not FREE.  A death may make it too high; the repair of gc corrects it. */
    XAC_LINE xac_shared _Atomic uint64_t used;
};

#define XAC_VSLOT_LOW ((UINT64_C(1) << 56) - 1) /* slot, commit or unlink in a word */

static inline uint64_t
xac_vslot_word(enum xac_vslot_state state, uint64_t slot)
{
    xac_assert(slot <= XAC_VSLOT_LOW);
    xac_assert(state <= XAC_VSLOT_LIMBO);
    return (uint64_t)state << 56 | slot;
}

XAC_SIGSAFE static inline enum xac_vslot_state
xac_vslot_state(uint64_t word)
{
    return (enum xac_vslot_state)(word >> 56);
}

/* ---- Transactions (slot.h) ----------------------------------------------------- */

enum xac_txn_state {
    XAC_TXN_FREE = 0, /* slot belongs to nobody                                 */
    XAC_TXN_IDLE = 1, /* slot belongs to a participant, no transaction          */
    XAC_TXN_PENDING = 2,
    XAC_TXN_FAILED = 3,
    XAC_TXN_COMMITTING = 4,
    XAC_TXN_PUBLISHED = 5,
    XAC_TXN_QUERY = 6,
    XAC_TXN_SNAPSHOT = 7, /* holds a state; no transaction: see snapshots.h       */
    XAC_TXN_CUT = 8, /* was a query; its state is not kept any more: reader_limit.h  */
};

/* Kinds of access in a set entry. */
enum {
    XAC_SET_READ = 1,
    XAC_SET_WRITE = 2,
    XAC_SET_LINKED = 4
};

/* Age of a slot after its transaction is over and will not be retried. */
#define XAC_AGE_OVER UINT64_MAX

/* Is this the first change of a page since XCHECKPT_BEGIN, and how is it logged? */
enum xac_first {
    XAC_FIRST_NOT = 0,
    XAC_FIRST_FULL = 1, /* a full image                                               */
    XAC_FIRST_BASE = 2, /* a difference to what the file holds (XAC_OPT_FULL_IMAGES)  */
};

/* One page in a read or write set; also the part of the commit descriptor for it. */
struct xac_entry {
    xac_shared _Atomic uint64_t next; /* offset of the next entry in the page's access
                                         list; under the page's lock                   */
    uint64_t page;                    /* offset of the struct xac_page                 */
    uint64_t slot;                    /* of the transaction                            */
    xac_shared _Atomic uint32_t mode; /* XAC_SET_...; under the page's lock            */
    uint32_t first;                   /* descriptor: enum xac_first                    */
    uint64_t vslot; /* descriptor: version slot of the new version, or 0    */
    uint64_t same; /* descriptor: lines (lines.h) that are as in the version before; 0 not
                       known                                                 */
    uint64_t
        in_place;   /* descriptor: 1 + the page of the in-place file (in_place.h), or 0 */
    uint64_t image; /* version slot of the page as it was before, or 0                 */
};

#define XAC_SET_BLOCK_ENTRIES 63

struct xac_set_block {
    uint64_t next; /* offset of the next block, 0 if none                       */
    uint64_t reserved[7];
    struct xac_entry entry[XAC_SET_BLOCK_ENTRIES];
};

/* What has happened in a slot, under all its owners, for xStats().  Only the owner stores here, so
   that no process stores to a cache line that others use; relaxed. */
struct xac_counters {
    xac_shared _Atomic uint64_t commits, commits_read_only, queries;
    xac_shared _Atomic uint64_t aborts_conflict, aborts_user, aborts_other;
    xac_shared _Atomic uint64_t traps_read, traps_write, hints;
    xac_shared _Atomic uint64_t pages_written;
    /* xend() of transactions that wrote and committed: of all in a durable environment, else of one in
       XAC_COMMITS_TIMED. */
    struct xac_times commit_times;
};

#define XAC_COMMITS_TIMED 16

/* Bytes of the name of a snapshot, with the NUL, and the words that they fill. */
#define XAC_SNAPSHOT_NAME_BYTES 64
#define XAC_SNAPSHOT_NAME_WORDS (XAC_SNAPSHOT_NAME_BYTES / 8)

/* Participant of a slot whose snapshot belongs to nobody: it has a name and a time to live. */
#define XAC_NOBODY ((UINT32_C(1) << 24) - 1)

/* Of the word `turn`: slots are fewer than the owners of page locks. */
#define XAC_TURN_SLOT_BITS XAC_ACCESS_OWNER_BITS
#define XAC_TURN_SLOT_MASK ((UINT64_C(1) << XAC_TURN_SLOT_BITS) - 1)

/* A transaction slot. */
struct xac_txn {
    xac_shared _Atomic uint64_t word; /* serial << 32 | participant << 8 | state       */
    xac_shared _Atomic uint64_t parent; /* commit number whose state it sees           */
    xac_shared _Atomic uint64_t start;  /* parent at begin                             */
    xac_shared _Atomic uint64_t next;   /* eager: parent that it is about to take, or has
                                           taken, or would have; see xac_view_parent   */
    xac_shared _Atomic uint64_t age;    /* smaller is older; kept when retried; AGE_OVER
                                           once it has committed or given up           */
    /* 1: reads are not in the set, because the participant was alone when it began.  Stored by
       the owner; survivors must see it. */
    xac_shared _Atomic uint32_t reads_unknown;
    uint32_t is_retry; /* owner only                                  */
    /* Why it failed, stored by the process that fails it: serial (24 bits) << 40 | kind << 32 |
       pid; and page id. */
    xac_shared _Atomic uint64_t why;
    xac_shared _Atomic uint64_t why_page;

    /* The set: a list of blocks kept from one transaction to the next. */
    uint64_t first_block; /* offset                                    */
    xac_shared _Atomic uint64_t n_entries;

    /* Descriptor of the commit; complete before COMMITTING. */
    uint32_t
        n_written; /* entries with a version slot                                    */
    uint32_t all_full;    /* every page is logged as a full image                    */
    uint64_t record;      /* offset of the closed log block; while COMMITTING it is
                               replaced under publish only                             */
    uint64_t record_size; /* bytes allocated for it                                  */
    uint64_t datafile;    /* serial of the data file, 0 if none                      */
    uint64_t ckpt_count;  /* of checkpoints begun when the block was built           */
    uint64_t number;      /* stored under publish before `publishing`                */
    uint64_t position;    /* LSN of the block; likewise                              */
    xac_shared _Atomic uint64_t
        end;          /* LSN behind the block; likewise.  Of a snapshot: up to where
                               what it shows is in the log; others read it, who may
                               find only then that it was released                     */
    uint64_t time_ns; /* wall clock, ns since 1970, as in the block; 0 without block and
                             history                                                 */

    xac_shared _Atomic uint64_t begin_ns; /* when it began, monotonic, within some ms; for
                                             xStats() only; its owner                  */
    /* Slot + 1 of the transaction that it lost to; 0 none: see xac_conflict_wait. */
    xac_shared _Atomic uint64_t lost_to;
    /* Smallest serial of a data file that any process has taken for the transaction; 0 none.
       Stored under publish, cleared when the transaction is over (release) and read under
       publish (acquire); see xac_commit_data_serial. */
    xac_shared _Atomic uint64_t data_floor;
    /* The ticket with which the slot waits for the turn, or has it; 0 none.  Stored by its owner
       (0: release); 0 also, under publish, by the one that takes the turn away. */
    xac_shared _Atomic uint64_t ticket;
    /* 1: the owner sleeps until the turn is free, or its own.  A hint: the sleep is short. */
    xac_shared _Atomic uint32_t is_asleep;
    /* 1: the owner has waited for long, and has the turn before all that have not.  Its owner's. */
    xac_shared _Atomic uint32_t is_late;
    /* 1: a query that gc may cut off.  Stored by its owner (1: release), read by gc (acquire). */
    xac_shared _Atomic uint32_t may_cut;
    /* For xParticipants() only, relaxed, its owner's: the thread that has begun; since when it waits
       for the turn or for another transaction, 0 it does not; the slot + 1 of that one, 0 the turn;
       `why` of its last transaction that failed, without the serial, and when that ended, 0 none. */
    xac_shared _Atomic uint32_t tid;
    xac_shared _Atomic uint64_t wait_ns, wait_for, last_why, last_failed_ns;

    /* Of a snapshot (snapshots.h); stored by its taker before the state, and with `reap` held. */
    xac_shared _Atomic uint64_t snapshot; /* its id                                    */
    xac_shared _Atomic uint64_t expires_ns; /* monotonic; 0: when its process ends */
    xac_shared _Atomic uint64_t name[XAC_SNAPSHOT_NAME_WORDS]; /* zeros: none */

    XAC_LINE struct xac_counters counters;
};

XAC_SIGSAFE static inline uint64_t
xac_txn_word(uint64_t serial, uint32_t participant, enum xac_txn_state state)
{
    xac_assert(participant <= XAC_NOBODY);
    xac_assert(state <= XAC_TXN_CUT);
    return serial << 32 | (uint64_t)participant << 8 | (uint64_t)state;
}

XAC_SIGSAFE static inline enum xac_txn_state
xac_txn_state(uint64_t word)
{
    return (enum xac_txn_state)(word & 0xff);
}

XAC_SIGSAFE static inline uint32_t
xac_txn_participant(uint64_t word)
{
    return (uint32_t)(word >> 8 & 0xffffff);
}

/* xac_txn_is_nobodys -- is it a snapshot that lives without its process? */
XAC_SIGSAFE static inline bool
xac_txn_is_nobodys(uint64_t word)
{
    return xac_txn_state(word) == XAC_TXN_SNAPSHOT
           && xac_txn_participant(word) == XAC_NOBODY;
}

XAC_SIGSAFE static inline uint64_t
xac_txn_serial(uint64_t word)
{
    return word >> 32;
}

/* True for states in which a transaction may still look at its parent's pages. */
XAC_SIGSAFE static inline bool
xac_txn_is_live(uint64_t word)
{
    enum xac_txn_state state = xac_txn_state(word);

    return state == XAC_TXN_PENDING || state == XAC_TXN_FAILED
           || state == XAC_TXN_COMMITTING || state == XAC_TXN_QUERY
           || state == XAC_TXN_SNAPSHOT;
}

/* xac_txn_name -- copy the name of a snapshot; "" if it has none. */
static inline void
xac_txn_name(const struct xac_txn *txn, char name[XAC_SNAPSHOT_NAME_BYTES])
{
    for (size_t i = 0; i < XAC_SNAPSHOT_NAME_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&txn->name[i], memory_order_relaxed);

        memcpy(name + 8 * i, &word, sizeof word);
    }
    xac_assert(txn != NULL);
    xac_assert(name != NULL);
    name[XAC_SNAPSHOT_NAME_BYTES - 1] = '\0';
}

/* ---- The chain of commits (ctree.h) -------------------------------------------- */

#define XAC_RING_ENTRIES 1024 /* recent commits                                       */
#define XAC_RING_PAGES   25   /* a commit of more pages says "all"                    */
#define XAC_RING_LINES   4    /* pages of a commit for which it is told what changed  */
#define XAC_RING_ALL     UINT32_MAX
#define XAC_UNLINK_PAGES 256 /* pages that one step of a checkpoint takes out        */

struct xac_ring_entry {
    xac_shared _Atomic uint64_t number;  /* cleared first, set last                     */
    uint64_t end_lsn;                    /* where the commit's log block ends           */
    uint32_t is_unlink;                  /* pages went to their files; nothing changed  */
    xac_shared _Atomic uint32_t n_pages; /* or XAC_RING_ALL                             */
    /* Of the first pages: lines (lines.h) that are as in the version before; 0 not known. */
    xac_shared _Atomic uint64_t same[XAC_RING_LINES];
    xac_shared _Atomic uint64_t page[XAC_RING_PAGES]; /* offsets of struct xac_page    */
};

/* Descriptor of an unlink: versions at or below `bound` of these pages are unlinked. */
struct xac_unlink {
    uint64_t number;
    uint64_t bound;
    uint32_t n_pages;
    uint32_t reserved;
    uint64_t page[XAC_UNLINK_PAGES];
};

/* Value of `publishing` while an unlink is under way; otherwise slot + 1, or 0. */
#define XAC_PUBLISHING_MOVE UINT64_MAX

/* A moment in the history: its state, its place on the scale of XAC_OPT_HISTORY, and the time. */
struct xac_moment {
    uint64_t number, at, time_ns;
};

#define XAC_MOMENTS 128

struct xac_chain {
    XAC_LINE struct xac_lock publish; /* rank XAC_RANK_PUBLISH                         */
    /* The work that a survivor must finish; the holder of publish stores it (release) and reads
       it (acquire). */
    xac_shared _Atomic uint64_t publishing;

    /* Every begin reads these; they are in one cache line, so that it waits only once.
       C: stored under publish (release), read by anyone (acquire). */
    XAC_LINE xac_shared _Atomic uint64_t commit;
    xac_shared _Atomic uint64_t next_age; /* next transaction's age; relaxed           */
    /* Stored under gc, read at begin. */
    xac_shared _Atomic uint64_t mark; /* smallest parent that is given out       */
    /* Of the history (history.h): states from this number on stay, and when that one was the
       present state, ns since 1970.  Stored under gc, read at the begin of a query of the past. */
    xac_shared _Atomic uint64_t past, past_ns;
    xac_shared _Atomic uint64_t
        made; /* versions published; stored under publish, relaxed */

    XAC_LINE struct xac_lock gc;            /* rank XAC_RANK_GC                       */
    uint64_t gc_done XAC_GUARDED_BY(gc);    /* ring entries up to here are done   */
    uint64_t settled XAC_GUARDED_BY(gc);    /* unlinks up to here have no readers   */
    uint64_t held XAC_GUARDED_BY(gc);       /* versions kept for queries so far ... */
    uint64_t held_point XAC_GUARDED_BY(gc); /* ... the oldest of which read this    */
    /* The sweep under way (gc.c): its next version slot, 0 if there is none; another one is to
       follow; what `settled` was when it began, and when the last complete one did; `used` and C
       when its last part was done. */
    uint64_t sweep_next XAC_GUARDED_BY(gc);
    uint64_t sweep_again XAC_GUARDED_BY(gc);
    uint64_t sweep_settled XAC_GUARDED_BY(gc);
    uint64_t swept XAC_GUARDED_BY(gc);
    uint64_t sweep_used XAC_GUARDED_BY(gc);
    uint64_t sweep_commit XAC_GUARDED_BY(gc);
    struct xac_moment moment[XAC_MOMENTS] XAC_GUARDED_BY(gc); /* see history.h ...     */
    uint64_t n_moments
        XAC_GUARDED_BY(gc); /* ... so many so far, each in the place % of its number */
    /* `used` and C when reader_limit.c has counted last. */
    uint64_t limit_used XAC_GUARDED_BY(gc);
    uint64_t limit_commit XAC_GUARDED_BY(gc);
    /* Stored under publish, count last (release); read by builders of blocks, count
       first (acquire). */
    XAC_LINE xac_shared _Atomic uint64_t ckpt_count; /* checkpoints begun              */
    /* Of the last XCHECKPT_BEGIN, or the start of the log. */
    xac_shared _Atomic uint64_t begin_lsn;
    struct xac_unlink unlink XAC_GUARDED_BY(publish);
    XAC_LINE struct xac_ring_entry ring[XAC_RING_ENTRIES];
};

/* ---- Bounded memory (outofcore.h) ---------------------------------------------- */

/* In the control region. */
struct xac_outofcore_shared {
    uint64_t n_frames;   /* XAC_OPT_FRAMES; 0: off.  Fixed when made, as the next one   */
    uint64_t pool_bytes; /* of the mapping                                              */
    /* For xStats(); relaxed.  Pages taken from the pool, how many of them had to be read into it,
       and how many were read past it because no user or no frame was free. */
    xac_shared _Atomic uint64_t fetches, reads, past;
    /* Pages that views have dropped; working copies written to temporary files, and read
       again. */
    xac_shared _Atomic uint64_t dropped, spilled, fetched_back;
};

/* ---- Which generation of the log it is (token.h) ---------------------------------- */

struct xac_generation {
    xac_shared _Atomic uint64_t number;
    xac_shared _Atomic uint64_t
        start; /* LSN                                            */
    xac_shared _Atomic uint64_t
        branch; /* its first eight bytes (lineage.h); 0 not known */
};

/* In the control region.  A writer's has one, as long as it lives; a standby's goes on. */
struct xac_generations {
    /* So many have been; the last one is that with this number % 2, and the other one may be changing.  Stored by
       the replayer, behind the element (release), read by anyone (acquire). */
    xac_shared _Atomic uint64_t n;
    struct xac_generation of[2]; /* relaxed */
};

/* ---- A standby (replayer.h) ----------------------------------------------------- */

/* In the control region.  One participant, the replayer, receives and redoes; all others query. */
struct xac_standby_shared {
    uint64_t is_one; /* 1: the region is that of a standby.  Fixed when made           */
    /* The log is redone up to here, and published; stored by the replayer (release), read by those who wait for a
       token (acquire).  If it has died: up to `redone_end`, if the commit `redone` has been published (0: no
       commit is named). */
    xac_shared _Atomic uint64_t applied;
    /* Commit number and end of the block that is being published; stored by the replayer, under publish. */
    uint64_t redone, redone_end;
};

/* ---- A group (group.h) ----------------------------------------------------------- */

#define XAC_GROUP_LEADER_BYTES \
 64 /* of words that say who leads, with the NUL           */
#define XAC_GROUP_LEADER_WORDS (XAC_GROUP_LEADER_BYTES / 8)

/* In the control region. */
struct xac_group_shared {
    uint64_t leads; /* 1: the region is that of a group's leader.  Fixed when made      */
    uint64_t
        node; /* its number in a group, leader or not; 0: it is in none.  Fixed when made */
    /* A majority has the log up to here; 0 if it does not lead.  Stored by the daemon (release), read by
       anyone (acquire). */
    xac_shared _Atomic uint64_t replicated;
    /* 1: nothing begins any more.  Stored by the daemon, and by a thread that has waited for too long; relaxed. */
    xac_shared _Atomic uint32_t deposed;
    /* A word of wakes.h: `replicated`, `deposed` or `answered` has changed, or on a standby `applied`. */
    xac_shared _Atomic uint32_t wakes;
    /* Who wants to see what is newest counts `asked` (release).  The daemon reads it (acquire), finds out up to which
       position everything is there that was acknowledged by then, and stores that, behind it the count that it
       had read (release), which is read by anyone (acquire): see group.h, ASKING. */
    xac_shared _Atomic uint64_t asked, answered, answered_lsn;
    /* A word of wakes.h: `asked` has changed; the daemon sleeps on it. */
    xac_shared _Atomic uint32_t asks;
    uint32_t reserved;
    xac_shared _Atomic uint64_t
        leader[XAC_GROUP_LEADER_WORDS]; /* for people; the daemon's; relaxed */
};

/* ---- The head ------------------------------------------------------------------ */

#define XAC_CONTROL_MAGIC   UINT64_C(0x314c525443434158) /* "XACCTRL1" */
#define XAC_CONTROL_VERSION 23u

/* Elements of the first chunk of each array, and of the version slots'. */
#define XAC_CONTROL_ELEMS  64
#define XAC_CONTROL_VSLOTS 256

/* Counters of rare events, for all together; xac_counters has those of each slot; relaxed. */
struct xac_rare_counters {
    xac_shared _Atomic uint64_t checkpoints, pages_checkpointed, dead_cleaned;
    /* Checkpoints that failed or left out a file: how many, error and time of the last one, in
       nanoseconds since 1970. */
    xac_shared _Atomic uint64_t ckpt_failures, ckpt_error_ns;
    xac_shared _Atomic int64_t ckpt_error;
    xac_shared _Atomic uint64_t queries_cut; /* reader_limit.h                          */
};

#define XAC_CONTROL_DIR_BYTES 4096 /* a path, PATH_MAX                                */

struct xac_control {
    struct xac_shm_head shm;

    /* Fixed when made, up to `dir`: the environment that the region belongs to. */
    uint64_t magic;
    uint32_t version; /* XAC_CONTROL_VERSION                                     */
    uint32_t bytes;   /* sizeof(struct xac_control): another build is refused    */
    uint32_t page_size;
    uint32_t flags;       /* XAC_DURABLE or XAC_NONDURABLE                           */
    uint8_t identity[16]; /* of the environment                                      */
    uint32_t generation;  /* of the log                                              */
    int32_t shm_error;    /* why it is not in the directory for shared memory; 0        */
    uint64_t log_ring;    /* offset of the log buffer, 0 if not durable              */
    uint64_t pid_namespace;   /* of its maker, and so of all participants; 0 unknown    */
    struct xac_identity home; /* the environment's directory ...                      */
    char dir[XAC_CONTROL_DIR_BYTES]; /* ... and its path when the region was made     */

    /* Options that concern all; relaxed. */
    xac_shared _Atomic uint64_t checkpoint_bytes;
    xac_shared _Atomic uint64_t reader_limit; /* XAC_OPT_READER_LIMIT; 0 none          */
    xac_shared _Atomic uint64_t log_keep_bytes; /* XAC_OPT_LOG_KEEP_BYTES             */
    xac_shared _Atomic uint32_t checksum;
    xac_shared _Atomic uint32_t page_checksums; /* XAC_OPT_PAGE_CHECKSUMS             */
    uint32_t policy; /* enum xac_policy_kind; fixed when made                         */
    uint32_t full_images; /* XAC_OPT_FULL_IMAGES; fixed when made                     */
    /* XAC_OPT_HISTORY; relaxed.  Fixed when made, 0 when the last participant leaves. */
    xac_shared _Atomic uint64_t history;
    struct xac_generations generations;
    struct xac_standby_shared standby;
    struct xac_group_shared group;

    struct xac_lock reap; /* rank XAC_RANK_REAP                                */
    uint32_t reap_next XAC_GUARDED_BY(reap); /* participant to look at next          */
    struct xac_lock files_lock; /* rank XAC_RANK_FILES                                */
    struct xac_lock checkpoint; /* rank XAC_RANK_CHECKPOINT                           */
    /* The checkpoint under way, see checkpoint.h; stored and read under `checkpoint`. */
    uint64_t ckpt_epoch;  /* + 1 when another one begins: then the one before stops     */
    uint64_t ckpt_query;  /* slot + 1 of the query that holds its bound, 0 none         */
    uint64_t ckpt_serial; /* of that slot's word                                      */
    /* The files have the state of this commit number, synced by a checkpoint; stored under
       `checkpoint`, relaxed. */
    xac_shared _Atomic uint64_t ckpt_bound;

    struct xac_array participants; /* struct xac_participant                          */
    struct xac_array files;        /* struct xac_file; count: ids given out           */
    struct xac_file_index file_index XAC_GUARDED_BY(files);
    xac_shared _Atomic uint64_t files_known, files_forgotten; /* for xStats(); relaxed  */
    struct xac_array txns; /* struct xac_txn; count: slots ever claimed       */

    /* Next data file's serial: stored under publish, together with the slot that it is for
       (struct xac_txn), and read elsewhere as a hint (relaxed). */
    xac_shared _Atomic uint64_t next_datafile;
    /* Bytes of data files so far, and when the last checkpoint began; relaxed, hints. */
    xac_shared _Atomic uint64_t data_bytes, data_bytes_begin;
    /* Data files with smaller serials, and those of earlier generations of the log, have
       been removed; under `checkpoint`. */
    uint64_t data_removed;
    /* The participant that is alone and need not record its reads, see alone.h. */
    xac_shared _Atomic uint64_t alone;
    /* The turn, see turn.h: ticket << XAC_TURN_SLOT_BITS | slot + 1 of its holder; 0 nobody.
       Taken, passed and taken away by exchange. */
    xac_shared _Atomic uint64_t turn;
    xac_shared _Atomic uint64_t next_ticket; /* given out last; relaxed                */
    /* Id of the next snapshot; relaxed.  It begins with the time in ns, so that a region made later gives
       out others. */
    xac_shared _Atomic uint64_t next_snapshot;
    /* 1 after the last participant has closed the region: a newcomer must start again. */
    xac_shared _Atomic uint32_t closed;

    struct xac_versions versions;
    /* Pages that are updated in place, see in_place.h. */
    xac_shared _Atomic uint64_t in_place_slot;  /* slot + 1 that does so, 0 none       */
    xac_shared _Atomic uint64_t in_place_head;  /* offset of the first such page       */
    xac_shared _Atomic uint64_t in_place_count; /* of them; a hint                    */
    struct xac_outofcore_shared outofcore;
    struct xac_rare_counters counters;
    struct xac_log_shared log; /* unused if not durable                                */
    struct xac_chain chain;
};

/* The bytes that tell the owner of a region. */
#define XAC_CONTROL_HEAD_BYTES offsetof(struct xac_control, checkpoint_bytes)

/* Count an event; relaxed, for statistics only. */
XAC_SIGSAFE static inline void
xac_count(_Atomic uint64_t *counter, uint64_t n)
{
    (void)atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif /* XAC_LAYOUT_H */
