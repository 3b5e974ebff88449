/* SPDX-License-Identifier: MIT */
/*
 * group_client.c -- a program at a node of a group that does what it is told: it appends records, reads, and asks what has become of
 * a commit.
 *
 * group_client DIR NAME  works on the records of the file NAME in DIR (group_file.h).  It reads a command from each line of standard
 * input, and answers each by one line:
 *
 *   append RECORD          done RECORD PLACE TOKEN: acknowledged; uncertain TOKEN: published, and not known; else failed CODE WORDS
 *   read snapshot          state N LAST TOKEN: the query saw N records, the last of which is LAST (0: none)
 *   read after TOKEN MS    the same
 *   read latest MS         the same
 *   fate TOKEN MS          fate CODE
 *
 * Of a query that could not begin, or whose end says that what it has seen may be lost: failed CODE WORDS.  A command that finds
 * that the environment has been deposed closes it.  The next one opens it again, as soon as the node lets it, for 5 s; then it
 * says: failed CODE WORDS.  The program ends at the end of its input.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xac.h>

#include "group_file.h"

#define OPEN_TRIES 250
#define OPEN_MS    20

static const char *dir, *name;
static struct group_file *f; /* NULL: the environment is not open                       */

/* leave -- the environment, if it is open. */
static void
leave(void)
{
    if (f != NULL)
        (void)xShutdown();
    f = NULL;
}

/* enter -- ret 0 or what xInit() and xMmap() say. */
static int
enter_once(void)
{
    char path[4096];
    int rc = xInit(dir, XAC_DURABLE);

    if (rc != 0)
        return rc;
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = (struct group_file *)xMmap(path, sizeof *f);
    if ((void *)f != MAP_FAILED)
        return 0;
    rc = errno;
    f = NULL;
    (void)xShutdown();
    return rc;
}

static int
enter(void)
{
    int rc = f != NULL ? 0 : enter_once();

    for (int i = 0; rc != 0 && i < OPEN_TRIES; i++) {
        (void)poll(NULL, 0, OPEN_MS);
        rc = enter_once();
    }
    return rc;
}

/* failed -- say so. */
static void
failed(int rc)
{
    printf("failed %d %s\n", rc, xLastError());
    if (rc == XAC_ENOTLEADER || rc == XAC_EUNCERTAIN)
        leave();
}

/* token_text -- of what has just been done. */
static const char *
token_text(void)
{
    static char text[XAC_TOKEN_TEXT];
    struct xac_token t;

    if (xToken(&t) != 0 || xTokenFormat(&t, text, sizeof text) != 0)
        (void)snprintf(text, sizeof text, "none");
    return text;
}

static void
append(const char *words)
{
    uint64_t record = strtoull(words, NULL, 10), place = 0;
    int rc;

    do {
        rc = xbegin();
        if (rc != 0) {
            failed(rc);
            return;
        }
        place = f->n;
        if (f->n < GROUP_RECORDS)
            f->record[f->n++] = record;
        rc = xend();
    } while (rc == ABORTED);
    if (rc == COMMITTED)
        printf("done %" PRIu64 " %" PRIu64 " %s\n", record, place, token_text());
    else if (rc == XAC_EUNCERTAIN)
        printf("uncertain %s\n", token_text());
    else
        failed(rc);
    if (rc == XAC_EUNCERTAIN)
        leave();
}

/* begin -- a query, of the kind that the words say; ret what the begin says, EINVAL: there is no such kind. */
static int
begin(const char *words)
{
    char text[128];
    struct xac_token t;
    unsigned ms;

    if (strcmp(words, "snapshot") == 0)
        return xbeginQuery();
    if (sscanf(words, "latest %u", &ms) == 1)
        return xbeginQueryLatest(ms);
    if (sscanf(words, "after %127s %u", text, &ms) == 2 && xTokenParse(text, &t) == 0)
        return xbeginQueryAfter(&t, ms);
    return EINVAL;
}

static void
read_state(const char *words)
{
    int rc = begin(words);
    char token[XAC_TOKEN_TEXT];
    uint64_t n, last;

    if (rc != 0) {
        failed(rc);
        return;
    }
    n = f->n;
    last = n > 0 && n <= GROUP_RECORDS ? f->record[n - 1] : 0;
    (void)snprintf(token, sizeof token, "%s", token_text());
    rc = xendQuery();
    if (rc == 0)
        printf("state %" PRIu64 " %" PRIu64 " %s\n", n, last, token);
    else
        failed(rc);
}

static void
fate(const char *words)
{
    struct xac_token t;
    char text[128];
    unsigned ms;

    if (sscanf(words, "%127s %u", text, &ms) == 2 && xTokenParse(text, &t) == 0)
        printf("fate %d\n", xFate(&t, ms));
    else
        printf("failed %d no token\n", EINVAL);
}

/* obey -- a command. */
static void
obey(char *line)
{
    static const struct {
        const char *verb;
        void (*fn)(const char *words);
    } commands[] = {{"append ", append}, {"read ", read_state}, {"fate ", fate}};
    int rc = enter();

    line[strcspn(line, "\n")] = '\0';
    if (rc != 0) {
        failed(rc);
        return;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        size_t n = strlen(commands[i].verb);

        if (strncmp(line, commands[i].verb, n) == 0) {
            commands[i].fn(line + n);
            return;
        }
    }
    printf("failed %d no such command\n", EINVAL);
}

int
main(int argc, char **argv)
{
    static char line[4096];

    if (argc != 3)
        return 2;
    dir = argv[1];
    name = argv[2];
    (void)setvbuf(stdout, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(line);
    leave();
    return 0;
}
