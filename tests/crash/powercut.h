/* SPDX-License-Identifier: MIT */
/*
 * powercut.h -- the parts of tests/crash/powercut.
 *
 *   powercut_work.c   what is recorded: scripts, and the history that each writer makes
 *   powercut_judge.c  one crash state: recover it, and compare with the history
 *   powercut.c        traces, points and states in turn; counting; the table
 *   ext4cut.c         the same writers and judge on a file system that is shut down
 *
 * The files a.db (outside the environment's directory) and b.db (inside) hold, for each
 * writer, a header with the number of its last transaction and a row of pages.  What
 * transaction n of a writer stores is a function of the run's seed, the writer and n; so
 * the number in the header says what the row must be.
 */
#ifndef XAC_TEST_POWERCUT_H
#define XAC_TEST_POWERCUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../common/disk.h"
#include "../common/record.h"

#define WRITERS   3u
#define ROW_PAGES 10u
#define TXNS_MAX \
 160u /* of one writer in one run, what comes after recoveries included  */
#define WORDS_MAX 8192u

/* Of scripts. */
enum {
    WITH_LARGE = 1, /* transactions that go to data files                           */
    WITH_CHECKPOINTS =
        2,            /* explicit ones, besides those by log size                     */
    WITH_GROWTH = 4,  /* files are mapped longer later                                */
    WITH_ARCHIVE = 8, /* log files that xArchive() names are removed                  */
    WITH_DEATHS = 16, /* single processes die                                         */
    WITH_READER = 32, /* a long query holds pages back                                */
    WITH_OPTIMISTIC = 64,
    WITH_DIGESTS = 128, /* MD5, SHA-1; other segment sizes from session to session      */
    WITH_FAILURE = 256, /* in the last session a sync fails                             */
    WITH_RECYCLE = 512, /* old log segments become new ones                             */
    WITH_NO_IMAGES =
        2048,            /* no full images, on a disk that writes pages as a whole      */
    WITH_LOG_DIR = 1024, /* the log lies in a directory of its own                    */
    WITH_OLDEST_WINS = 4096,
    WITH_NAMES = 8192 /* a file is made, renamed and removed, again and again         */
};

struct script {
    const char *name;
    unsigned flags;
    unsigned sessions; /* each ends with shutdowns or with the death of all             */
    unsigned txns;     /* of each writer in each session                                */
};

extern const struct script scripts[];
extern const unsigned n_scripts;

/* What each writer has been promised, and what it has tried. */
struct promise {
    uint64_t acknowledged[WRITERS];
    uint64_t tried[WRITERS];
    uint64_t name_reached, name_tried; /* with WITH_NAMES, see work_name               */
};

/* One recorded run. */
struct run {
    const struct script *script;
    uint64_t seed;
    char root[400]; /* absolute; holds the environment db and the directory files */
    struct record_trace *trace;
    uint64_t page_hash[WRITERS][TXNS_MAX + 1]
                      [ROW_PAGES]; /* of the history               */
};

/* ---- powercut_work.c ---- */

/* work_history -- fill in page_hash. */
void work_history(struct run *r);

/* work_record -- run the script in child processes, recorded from an empty root on. */
void work_record(struct run *r);

/*
 * work_prepare, work_start, work_promise -- the same writers without a recorder: an empty
 * root; a session of theirs in child processes, which end with their last transaction, and
 * with WITH_FAILURE when a call fails; what they have been promised so far.
 */
void work_prepare(struct run *r);
void work_start(const struct run *r, unsigned session, pid_t pid[WRITERS]);
void work_promise(struct promise *p);

/* work_note -- a note of the trace changes what has been promised. */
void work_note(const struct record_event *ev, struct promise *p);

/*
 * work_continue -- in this process: open, look, some transactions of each writer, leave;
 * with notes.  Every call must succeed.
 *
 * ret  NULL, or which call failed, in words (static storage).
 */
const char *work_continue(const struct run *r, uint64_t seed);

/* work_paths -- of the environment and of the two files, relative to the root. */
extern const char *const work_path[3];

/*
 * work_name -- the names of the file that writer 0 makes, renames and removes, relative to the root.
 *
 * Its state t: 0 modulo 3: it is not there; 1: it is there under its first name, 2: under its second one, with
 * t / 3 + 1 in it.
 */
extern const char *const work_name[2];

/* work_page -- where page j of a writer's row is: which file, and the page in it. */
uint64_t work_page(unsigned w, unsigned j, unsigned *filep);

/* ---- powercut_judge.c ---- */

enum outcome {
    OUTCOME_RIGHT,
    OUTCOME_LOST, /* something acknowledged is not there                              */
    OUTCOME_PARTIAL, /* half a transaction, or one without those it has seen             */
    OUTCOME_FAILED, /* the recovery fails, crashes or hangs                             */
    OUTCOME_UNSTABLE, /* another recovery changes something                               */
    OUTCOME_STUCK, /* no new transactions                                              */
    OUTCOMES
};

extern const char *const outcome_name[OUTCOMES];

/* judge_files -- whether the files are what was promised; `what` gets the words. */
enum outcome judge_files(const struct run *r, const struct promise *p, char *what,
                         size_t what_size);

/* judge_counts, judge_hash -- the number of each writer's last transaction, and a hash of
   all bytes, in the files. */
void judge_counts(const struct run *r, uint64_t n[WRITERS]);
uint64_t judge_hash(const struct run *r);

/*
 * judge_recovery -- recover twice what lies in the root, and judge the files.
 *
 * in   goes_on  also open it and go on with transactions
 */
enum outcome judge_recovery(const struct run *r, const struct promise *p, bool goes_on,
                            uint64_t seed, char *what, size_t what_size);

#endif /* XAC_TEST_POWERCUT_H */
