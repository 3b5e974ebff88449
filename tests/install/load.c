/* SPDX-License-Identifier: MIT */
/*
 * load.c LIBRARY -- a program that loads the library while it runs, as plug-ins are loaded.
 *
 * GOAL    dlopen() of the shared library works, and then transactions of two threads, of
 *         which one was there before the library; a thread that has never called the library
 *         and touches a segment is told so by the fault handler; threads that end after
 *         dlclose() end well.
 * METHOD  This program is not linked with libxac.  It runs in an empty directory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#define ROUNDS 200

static __typeof__(&xInit) init;
static __typeof__(&xMmap) map;
static __typeof__(&xView) view;
static __typeof__(&xbegin) begin;
static __typeof__(&xend) end;
static __typeof__(&xLastError) last_error;
static __typeof__(&xShutdown) shut_down;

static void *library;
static uint64_t *segment;
static sem_t go, done;

static void
check(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "load: not so: %s: %s\n", what,
            last_error != NULL ? last_error() : "");
    exit(1);
}

static void *
find(const char *name)
{
    void *p = dlsym(library, name);

    check(p != NULL, name);
    return p;
}

/* add_one -- one transaction of the calling thread. */
static void
add_one(uint64_t *x)
{
    int rc;

    do {
        check(begin() == 0, "xbegin");
        x[0]++;
        rc = end();
    } while (rc == ABORTED);
    check(rc == COMMITTED, "xend");
}

/* worker -- waits until the library is loaded; ends after it has been unloaded. */
static void *
worker(void *arg)
{
    uint64_t *mine;

    check(sem_wait(&go) == 0, "go");
    check(last_error()[0] == '\0', "a thread begins without an error");
    check(end() == XAC_ENOTXN && last_error()[0] != '\0', "an error has a text");
    mine = (uint64_t *)view(segment);
    check(mine != NULL, "xView");
    for (int i = 0; i < ROUNDS; i++)
        add_one(mine);
    check(sem_post(&done) == 0, "done");
    check(sem_wait(&go) == 0, "end");
    return arg;
}

/* touch -- by a thread that has never called the library. */
static void *
touch(void *arg)
{
    *(volatile uint64_t *)arg = 1;
    return arg;
}

/* stranger -- in a child: the message of the fault handler. */
static void
stranger(void)
{
    char text[1024];
    ssize_t n;
    int fds[2], status;
    pid_t pid;

    check(pipe(fds) == 0, "pipe");
    pid = fork();
    if (pid == 0) {
        pthread_t t;

        (void)dup2(fds[1], STDERR_FILENO);
        /* The thread's first action concerning the library is the fault. */
        (void)begin();
        if (pthread_create(&t, NULL, touch, segment) == 0)
            (void)pthread_join(t, NULL);
        _exit(1);
    }
    check(pid > 0 && close(fds[1]) == 0, "fork");
    n = read(fds[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status)
              && WTERMSIG(status) == SIGABRT,
          "a stranger's access ends in SIGABRT");
    check(strstr(text, "by a thread that has no transaction") != NULL, text);
}

int
main(int argc, char **argv)
{
    pthread_t before, after;

    check(argc == 2, "usage: load LIBRARY");
    check(sem_init(&go, 0, 0) == 0 && sem_init(&done, 0, 0) == 0, "semaphores");
    check(pthread_create(&before, NULL, worker, NULL) == 0, "thread");
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "load: %s\n", dlerror());
        return 1;
    }
    init = (__typeof__(init))find("xInit");
    map = (__typeof__(map))find("xMmap");
    view = (__typeof__(view))find("xView");
    begin = (__typeof__(begin))find("xbegin");
    end = (__typeof__(end))find("xend");
    last_error = (__typeof__(last_error))find("xLastError");
    shut_down = (__typeof__(shut_down))find("xShutdown");
    check(init("loaded", DURABLE) == 0, "xInit");
    segment = (uint64_t *)map("numbers", 4096);
    check(segment != MAP_FAILED, "xMmap");
    check(pthread_create(&after, NULL, worker, NULL) == 0, "thread");
    for (int i = 0; i < 2; i++)
        check(sem_post(&go) == 0, "go");
    for (int i = 0; i < 2; i++)
        check(sem_wait(&done) == 0, "done");
    add_one(segment);
    check(begin() == 0 && segment[0] == 2 * ROUNDS + 1, "nothing is lost");
    check(end() == COMMITTED, "xend");
    stranger();
    check(dlclose(library) == 0, "dlclose");
    for (int i = 0; i < 2; i++)
        check(sem_post(&go) == 0, "end");
    check(pthread_join(before, NULL) == 0 && pthread_join(after, NULL) == 0, "join");
    check(shut_down() == 0, "xShutdown"); /* the library has stayed */
    printf("load: %d transactions\n", 2 * ROUNDS + 1);
    return 0;
}
