/* SPDX-License-Identifier: MIT */
/*
 * client_dqlite.c -- writers to a group of dqlite: a connection each to the node that leads.
 *
 * The table has an integer primary key and a blob, as that of SQLite in xbench insert.  A record is an INSERT, prepared once, in
 * a transaction of its own.
 *
 * The writers have a mutex: dqlite has one transaction at a time, and answers any other one with SQLITE_BUSY, so without it all
 * but one of them would ask again and again, and keep the node that leads busy.  8 writers without a mutex made 69 commits a
 * second where 108 were made with it.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/kit/util.h"
#include "dqlite_wire.h"
#include "group_client.h"

#define DATABASE "records"
#define TABLE    "CREATE TABLE records (key INTEGER PRIMARY KEY, value BLOB)"
#define INSERT   "INSERT INTO records VALUES (?, ?)"
#define COUNT    "SELECT count(*) FROM records"

struct client {
    struct dqlite_wire wire;
    uint32_t insert; /* statement */
};

/* The mutex of all writers. */
static pthread_mutex_t *turn;

static const char *
share(void)
{
    pthread_mutexattr_t attr;

    turn = (pthread_mutex_t *)mmap(NULL, sizeof *turn, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turn == MAP_FAILED)
        return strerror(errno);
    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(turn, &attr);
    (void)pthread_mutexattr_destroy(&attr);
    return NULL;
}

/* open_database -- connect, and open; nothing is prepared. */
static const char *
open_database(struct dqlite_wire *w, const char *place)
{
    const char *words = group_dqlite_open(w, place);

    if (words != NULL)
        return words;
    group_dqlite_begin(w, DQLITE_OPEN);
    group_dqlite_text(w, DATABASE);
    group_dqlite_u64(w, 0); /* flags and file system mean nothing */
    group_dqlite_text(w, "");
    return group_dqlite_call(w);
}

static const char *
prepare(const char *place)
{
    static struct dqlite_wire w;
    const char *words = open_database(&w, place);

    if (words == NULL) {
        group_dqlite_begin(&w, DQLITE_EXEC_SQL);
        group_dqlite_u64(&w, 0); /* the database */
        group_dqlite_text(&w, TABLE);
        group_dqlite_u64(&w, 0); /* no parameters */
        words = group_dqlite_call(&w);
    }
    group_dqlite_close(&w);
    return words;
}

static const char *
leads(const char *place, bool *leadsp)
{
    static struct dqlite_wire w;
    const char *words = group_dqlite_open(&w, place);

    if (words == NULL) {
        group_dqlite_begin(&w, DQLITE_LEADER);
        group_dqlite_u64(&w, 0);
        words = group_dqlite_call(&w);
    }
    if (words == NULL) {
        w.message[w.n] = '\0';
        *leadsp = w.n > 8 && strcmp((const char *)w.message + 8, place) == 0;
    }
    group_dqlite_close(&w);
    return words;
}

static const char *
client_open(const char *place, void **handlep)
{
    struct client *c = (struct client *)calloc(1, sizeof *c);
    const char *words;

    if (c == NULL)
        return "out of memory";
    *handlep = c;
    words = open_database(&c->wire, place);
    if (words != NULL)
        return words;
    group_dqlite_begin(&c->wire, DQLITE_PREPARE);
    group_dqlite_u64(&c->wire, 0);
    group_dqlite_text(&c->wire, INSERT);
    words = group_dqlite_call(&c->wire);
    c->insert = (uint32_t)(group_dqlite_answer_u64(&c->wire, 0) >> 32);
    return words;
}

static const char *
put(void *handle, const void *key, const void *value)
{
    static const uint8_t types[] = {2, DQLITE_INTEGER, DQLITE_BLOB};
    struct client *c = (struct client *)handle;
    const char *words;

    (void)pthread_mutex_lock(turn);
    do { /* it may be busy with a checkpoint of its own, too */
        group_dqlite_begin(&c->wire, DQLITE_EXEC);
        group_dqlite_u32(&c->wire, 0);
        group_dqlite_u32(&c->wire, c->insert);
        group_dqlite_bytes(&c->wire, types, sizeof types);
        group_dqlite_u64(&c->wire, bench_key_decode((const unsigned char *)key));
        group_dqlite_u64(&c->wire, BENCH_VALUE_BYTES);
        group_dqlite_bytes(&c->wire, value, BENCH_VALUE_BYTES);
        words = group_dqlite_call(&c->wire);
    } while (words != NULL && group_dqlite_is_busy(&c->wire));
    (void)pthread_mutex_unlock(turn);
    return words;
}

static const char *
count(void *handle, uint64_t *np)
{
    struct dqlite_wire *w = &((struct client *)handle)->wire;
    const char *words;

    group_dqlite_begin(w, DQLITE_QUERY_SQL);
    group_dqlite_u64(w, 0);
    group_dqlite_text(w, COUNT);
    group_dqlite_u64(w, 0);
    words = group_dqlite_call(w);
    /* How many columns; the name of the one, "count(*)", with its end; the types of a row; the row. */
    if (words == NULL)
        *np = group_dqlite_answer_u64(w, 8 + 16 + 8);
    return words;
}

static const char *
client_close(void *handle)
{
    group_dqlite_close(&((struct client *)handle)->wire);
    free(handle);
    return NULL;
}

const struct group_client group_client_dqlite = {.name = "dqlite",
                                                 .prepare = prepare,
                                                 .leads = leads,
                                                 .share = share,
                                                 .open = client_open,
                                                 .put = put,
                                                 .count = count,
                                                 .close = client_close};
