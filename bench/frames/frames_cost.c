/* SPDX-License-Identifier: MIT */
/*
 * frames_cost.c -- instructions of a fix and its unfix (row nb-7), counted by valgrind: this program
 * runs itself under callgrind with two numbers of fixes, and the difference is theirs.  Counted is
 * what happens from the call to the return, not the caller's part.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/frames/frames_table.h"
#include "bench/kit/util.h"

#define FEW        20000u
#define MANY       120000u
#define PATH_BYTES 1024
#define COMMAND                                                                   \
 "exec valgrind --tool=callgrind --callgrind-out-file=/dev/null "                 \
 "--toggle-collect=xac_frames_fix --toggle-collect=xac_frames_unfix '%s' frames " \
 "--count %s:%u 2>&1"
#define COUNT_WORDS "Collected : "

/* fix_in_turn -- n fixes, one page after the other; misses if there are fewer frames. */
static int
fix_in_turn(struct xac_frames_user *user, uint64_t n_pages, uint64_t n)
{
    struct xac_frames_pin pin;
    uint64_t page = 0;
    int rc = 0;

    for (uint64_t i = 0; i < n && rc == 0; i++) {
        rc = xac_frames_fix(user, page, 0, &pin);
        if (rc == 0)
            xac_frames_unfix(user, &pin);
        page = page + 1 < n_pages ? page + 1 : 0;
    }
    return rc;
}

int
bench_frames_count(const char *what)
{
    struct xac_frames_config c = {.n_pages = 4096, .n_frames = 4096, .n_users = 1};
    const char *colon = strchr(what, ':');
    struct xac_frames_user *user;
    struct xac_frames *pool;
    uint64_t n;

    if (colon == NULL || !bench_parse_u64(colon + 1, &n))
        return bench_fail("frames: --count WHAT:N");
    if (strncmp(what, "nb-miss:", 8) == 0)
        c.n_frames = 512;
    else if (strncmp(what, "lru-hit:", 8) == 0)
        c.policy = XAC_FRAMES_LRU;
    else if (strncmp(what, "nb-hit:", 7) != 0)
        return bench_fail("frames: --count nb-hit, nb-miss or lru-hit");
    if (xac_frames_create(&c, NULL, NULL, &pool) != 0
        || xac_frames_join(pool, &user) != 0)
        return bench_fail("frames: no pool");
    if (fix_in_turn(user, c.n_pages, c.n_pages) != 0
        || fix_in_turn(user, c.n_pages, n) != 0)
        return bench_fail("frames: no frame");
    xac_frames_leave(user);
    xac_frames_close(pool);
    return 0;
}

/* instructions -- of a whole run of this program; 0 if there is no valgrind. */
static double
instructions(const char *what, unsigned n)
{
    char path[PATH_BYTES], command[2 * PATH_BYTES], line[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    double count = 0;
    FILE *pipe;

    if (length < 0)
        return 0;
    path[length] = '\0';
    if (strchr(path, '\'') != NULL)
        return 0;
    (void)snprintf(command, sizeof command, COMMAND, path, what, n);
    pipe = popen(command, "r");
    if (pipe == NULL)
        return 0;
    while (fgets(line, sizeof line, pipe) != NULL) {
        const char *at = strstr(line, COUNT_WORDS);

        if (at != NULL)
            count = strtod(at + strlen(COUNT_WORDS), NULL);
    }
    return pclose(pipe) == 0 ? count : 0;
}

int
bench_row_instructions(struct table *t)
{
    static const char *const what[] = {"nb-hit", "nb-miss", "lru-hit"};
    double per[3];
    bool counted = true;

    for (int i = 0; i < 3 && counted; i++) {
        double few = instructions(what[i], FEW), many = instructions(what[i], MANY);

        counted = few > 0 && many > few;
        per[i] = (many - few) / (MANY - FEW);
    }
    if (!counted)
        bench_row(t, "nb-7", "instructions per fix and unfix", "hit <= 80, miss <= 400",
                  ROW_NOT_RUN, "valgrind is not installed, or failed");
    else
        bench_row(t, "nb-7", "instructions per fix and unfix (callgrind)",
                  "hit <= 80, miss without a read <= 400, hit <= half of lru's",
                  ROW_IF(per[0] <= 80 && per[1] <= 400 && per[0] <= 0.5 * per[2]),
                  "hit %.1f, miss %.1f, lru hit %.1f", per[0], per[1], per[2]);
    return 0;
}
