/* SPDX-License-Identifier: MIT */
/*
 * tool.h -- what the command-line tools share: exit codes, opening an environment's
 * directory, words, JSON.
 */
#ifndef XAC_TOOL_H
#define XAC_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "log/log_format.h"

/* Exit codes, the same for all tools; documented in their manual pages. */
enum {
    EXIT_DONE = 0,
    EXIT_ERROR = 1,
    EXIT_USAGE = 2,
    EXIT_DAMAGED = 3,
    EXIT_LIVE = 4,
    EXIT_NOTENV = 5,
};

struct xac_env;

/* tool_name -- of the running tool, for messages; each tool defines it. */
extern const char *const tool_name;

/* tool_version -- print name and version of the library; ret EXIT_DONE. */
int tool_version(void);

/* tool_fail -- say on stderr what is wrong with `about`; ret the exit code for rc. */
int tool_fail(const char *about, int rc);

/* tool_flush -- ret code, or EXIT_ERROR after a message if stdout could not be written. */
int tool_flush(int code);

/* tool_exit_code -- of an error code of the library. */
int tool_exit_code(int rc);

/*
 * tool_open_dir -- open an environment's directory and read its master record.
 *
 * out  fdp     descriptor of the directory, the caller's; -1 on failure
 * out  master  the newest valid record; NULL if it is not wanted
 * ret  0; XAC_ENOTENV; XAC_EVERSION and others of xac_master_read; errno.  Words noted.
 */
int tool_open_dir(const char *path, int *fdp, struct xac_master_slot *master);

/*
 * tool_take_part -- call fn(arg, env) as a participant, outside of transactions; the log keeps its segment size.
 *
 * in   log_dir  of a new log, NULL the usual one
 * in   what     the call that messages name
 * ret  what fn returns, or an error
 */
int tool_take_part(const char *dir, const char *log_dir, const char *what,
                   int (*fn)(void *arg, struct xac_env *env), void *arg);

/* tool_number -- a decimal number; ret false if it is none. */
bool tool_number(const char *text, uint64_t *outp);

/* tool_time -- nanoseconds since 1970 from "@SECONDS", or local "YYYY-MM-DD HH:MM:SS",
   also with T between and with a fraction; Z at the end means UTC. */
bool tool_time(const char *text, uint64_t *time_nsp);

/*
 * tool_until -- WHEN of --until: an LSN, a time as above, or "end".
 *
 * out  lsnp, time_nsp  at most one of them is not 0; both are: "end"
 * ret  false if it is none of them, with words on standard error.
 */
bool tool_until(const char *text, uint64_t *lsnp, uint64_t *time_nsp);

/* tool_time_words -- UTC, as tool_time reads it, to the microsecond; ret buf. */
const char *tool_time_words(uint64_t time_ns, char buf[40]);

/* plural -- "1 file", "2 files". */
static inline const char *
plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- JSON ------------------------------------------------------------------------- */

#define JSON_DEPTH 8

/* A value being written to stdout. */
struct json {
    bool is_pretty; /* members of the outermost object on lines of their own          */
    int depth;
    bool is_first[JSON_DEPTH];
    char end[JSON_DEPTH]; /* bracket that closes this depth                           */
};

/* Each takes the member's key, or NULL in an array and outermost. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* a newline follows the outermost                     */
void json_string(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, uint64_t value);
void json_code(struct json *j, const char *key, int value);
void json_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);

#endif /* XAC_TOOL_H */
