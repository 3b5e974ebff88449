/* SPDX-License-Identifier: MIT */
/*
 * group_writer.c -- a program that writes to the node that leads: it appends records, and says which ones are acknowledged.
 *
 * group_writer DIR NAME FIRST  appends FIRST, FIRST + 1, and so on to the records of the file NAME in DIR, one in each
 * transaction.  Standard output: "begin RECORD" before it asks for a commit, and "done RECORD PLACE" when it is
 * acknowledged.  Exit codes: 0 told to stop by SIGTERM, 3 the node does not lead, 4 what became of the last record is not
 * known, 1 another error, in words on standard error.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>

#include "group_file.h"

static volatile sig_atomic_t is_over;

static void
stop(int signal)
{
    (void)signal;
    is_over = 1;
}

/* code_of -- the exit code for what a call has returned. */
static int
code_of(const char *call, int rc)
{
    if (rc == XAC_ENOTLEADER)
        return 3;
    if (rc == XAC_EUNCERTAIN)
        return 4;
    fprintf(stderr, "group_writer: %s: %s\n", call, xLastError());
    return 1;
}

/* append -- one record; ret 0 or what a call has returned. */
static int
append(struct group_file *f, uint64_t record, uint64_t *placep)
{
    int rc;

    do {
        rc = xbegin();
        if (rc != 0)
            return rc;
        *placep = f->n;
        if (f->n < GROUP_RECORDS)
            f->record[f->n++] = record;
        rc = xend();
    } while (rc == ABORTED);
    return rc == COMMITTED ? 0 : rc;
}

int
main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = stop};
    struct group_file *f;
    char path[4096];
    uint64_t record, place;
    int rc;

    if (argc != 4)
        return 2;
    record = strtoull(argv[3], NULL, 10);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)setvbuf(stdout, NULL, _IONBF, 0);
    rc = xInit(argv[1], XAC_DURABLE);
    if (rc != 0)
        return code_of("xInit", rc);
    (void)snprintf(path, sizeof path, "%s/%s", argv[1], argv[2]);
    f = (struct group_file *)xMmap(path, sizeof *f);
    if (f == MAP_FAILED) {
        rc = errno;
        (void)xShutdown();
        return code_of("xMmap", rc);
    }
    while (rc == 0 && !is_over) {
        printf("begin %" PRIu64 "\n", record);
        rc = append(f, record, &place);
        if (rc == 0)
            printf("done %" PRIu64 " %" PRIu64 "\n", record, place);
        record++;
    }
    rc = rc == 0 ? 0 : code_of("transaction", rc);
    (void)xShutdown();
    return rc;
}
