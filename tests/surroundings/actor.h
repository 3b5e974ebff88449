/* SPDX-License-Identifier: MIT */
/*
 * actor.h -- a child process that has an environment open and counts its commits in a
 * mapped file, as far as it is told; and shell commands on what it leaves.
 *
 * The count stands in the file's first word.  Included once per program.
 */
#ifndef XAC_TEST_ACTOR_H
#define XAC_TEST_ACTOR_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../common/env.h"
#include "../common/tool_run.h"

struct actor {
    char dir[100], file[100], log_dir[100];
    int flags;
    _Atomic uint64_t wanted; /* commits                                               */
    _Atomic uint64_t count;  /* acknowledged                                          */
    _Atomic uint64_t checkpoint, checkpoints; /* asked for, done                      */
    _Atomic uint64_t mapped; /* 1 it is, 2 it was refused ...                         */
    _Atomic uint64_t code;   /* ... with this errno                                   */
    _Atomic uint64_t quit;   /* 1: xShutdown()                                        */
    char words[512];         /* of the refusal                                        */
    pid_t pid;
};

/* play -- the child. */
static void
play(void *arg)
{
    struct actor *a = (struct actor *)arg;
    uint64_t *cell;

    must_ok(xac_set_log_directory(a->log_dir[0] != '\0' ? a->log_dir : NULL));
    must_ok(xac_init(a->dir, a->flags));
    cell = (uint64_t *)xac_mmap(a->file, env_page());
    if (cell == MAP_FAILED) {
        word_store(&a->code, (uint64_t)errno);
        (void)snprintf(a->words, sizeof a->words, "%s", xac_last_error());
        must_ok(xac_shutdown());
        word_store(&a->mapped, 2);
        return;
    }
    word_store(&a->count, env_get(cell));
    word_store(&a->mapped, 1);
    while (word_load(&a->quit) == 0) {
        if (word_load(&a->count) < word_load(&a->wanted)) {
            env_increment(cell);
            word_add(&a->count, 1);
        } else if (word_load(&a->checkpoints) < word_load(&a->checkpoint)) {
            must_ok(xac_checkpoint());
            word_add(&a->checkpoints, 1);
        } else {
            proc_sleep_us(200);
        }
    }
    must_ok(xac_shutdown());
}

/* actor_new -- one that opens `dir` and maps `file`; it is not there yet. */
static struct actor *
actor_new(const char *dir, const char *file)
{
    struct actor *a = (struct actor *)proc_shared(sizeof *a);

    a->flags = XAC_DURABLE;
    (void)snprintf(a->dir, sizeof a->dir, "%s", dir);
    (void)snprintf(a->file, sizeof a->file, "%s", file);
    return a;
}

/* actor_enter -- it comes, and maps its file or is refused. */
static inline void
actor_enter(struct actor *a)
{
    word_store(&a->mapped, 0);
    word_store(&a->quit, 0);
    a->pid = proc_spawn(play, a);
    proc_await(&a->mapped, 1, 60);
}

static inline bool
actor_was_refused(struct actor *a)
{
    if (word_load(&a->mapped) == 1)
        return false;
    proc_join(a->pid);
    return true;
}

/* actor_count -- let it commit until it has counted that far. */
static inline void
actor_count(struct actor *a, uint64_t n)
{
    word_store(&a->wanted, n);
    proc_await(&a->count, n, 60);
}

static inline void
actor_checkpoint(struct actor *a)
{
    word_add(&a->checkpoint, 1);
    proc_await(&a->checkpoints, word_load(&a->checkpoint), 60);
}

/* actor_leave -- it shuts down. */
static inline void
actor_leave(struct actor *a)
{
    word_store(&a->quit, 1);
    proc_join(a->pid);
}

/* actor_start -- one that has counted up to n. */
static inline struct actor *
actor_start(const char *dir, const char *file, uint64_t n)
{
    struct actor *a = actor_new(dir, file);

    actor_enter(a);
    must_eq(word_load(&a->mapped), 1);
    actor_count(a, n);
    return a;
}

/* actor_main -- env_main(), with the tools of the build at hand in every directory. */
static inline int
actor_main(Suite *s)
{
    const char *top = getenv("top_builddir");
    char *path = realpath(top != NULL ? top : ".", NULL);

    must(path != NULL && setenv("top_builddir", path, 1) == 0);
    free(path);
    return env_main(s);
}

/* shell -- a command that must succeed. */
static inline void
shell(const char *command)
{
    int status = system(command);

    if (status != 0)
        env_fail(__FILE__, __LINE__, "%s: status %d", command, status);
}

#endif /* XAC_TEST_ACTOR_H */
