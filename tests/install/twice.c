/* SPDX-License-Identifier: MIT */
/*
 * twice.c -- a program with two libraries that use libxac: see check_twice.sh.
 *
 * usage: twice LEFT.so RIGHT.so.  Neither the program nor one of the libraries knows that
 * another part of the process uses libxac, too.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twice_counter.h"

#define must(cond) ((cond) ? (void)0 : fail(__LINE__, #cond))

static const struct counter *left, *right;
static sigjmp_buf back;
static volatile int n_faults;

static void
fail(int line, const char *what)
{
    fprintf(stderr, "twice.c:%d: not so: %s\n", line, what);
    _exit(EXIT_FAILURE);
}

static const struct counter *
load(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (object == NULL)
        fprintf(stderr, "%s\n", dlerror());
    must(object != NULL);
    return (const struct counter *)dlsym(object, "counter");
}

static void
on_fault(int sig)
{
    (void)sig;
    n_faults++;
    siglongjmp(back, 1);
}

/* fault -- the program's own. */
static void
fault(void)
{
    volatile char *p =
        (volatile char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int before = n_faults;

    if (sigsetjmp(back, 1) == 0)
        *p = 1;
    must(n_faults == before + 1);
}

static long
add_right(void)
{
    return right->add(NULL);
}

static long
add_left(void)
{
    return left->add(NULL);
}

#define N_EACH 1000

static void *
add_many(void *arg)
{
    for (int i = 0; i < N_EACH; i++)
        must(((const struct counter *)arg)->add(NULL) > 0);
    return NULL;
}

/* run_threads -- each library in a thread of its own. */
static void
run_threads(void)
{
    pthread_t t[2];

    must(pthread_create(&t[0], NULL, add_many, (void *)(size_t)left) == 0);
    must(pthread_create(&t[1], NULL, add_many, (void *)(size_t)right) == 0);
    must(pthread_join(t[0], NULL) == 0 && pthread_join(t[1], NULL) == 0);
}

static void *
fail_right(void *arg)
{
    must(strstr(right->fail(), "no-right-file") != NULL);
    return arg;
}

static void
check_errors(void)
{
    const char *words = left->fail();
    pthread_t t;

    must(strstr(words, "no-left-file") != NULL);
    must(pthread_create(&t, NULL, fail_right, NULL) == 0);
    must(pthread_join(t, NULL) == 0);
    must(strstr(words, "no-left-file") != NULL);
    must(strstr(right->fail(), "no-right-file") != NULL);
}

static void
check_fork(void)
{
    pid_t pid = fork();
    int status;

    must(pid >= 0);
    if (pid == 0) {
        must(left->add(add_right) == N_EACH + 3);
        must(right->add(NULL) == N_EACH + 4);
        must(left->close() == 0 && right->close() == 0);
        _exit(EXIT_SUCCESS);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0);
}

static long
touch_right(void)
{
    return *right->address() = 1;
}

/* check_touch -- one library's transaction does not open the other's pages. */
static void
check_touch(void)
{
    pid_t pid = fork();
    int status;

    must(pid >= 0);
    if (pid == 0) {
        must(freopen("/dev/null", "w", stderr) != NULL);
        (void)left->add(touch_right);
        _exit(EXIT_SUCCESS);
    }
    must(waitpid(pid, &status, 0) == pid);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int
main(int argc, char **argv)
{
    struct sigaction own = {.sa_handler = on_fault};

    must(argc == 3);
    must(sigaction(SIGSEGV, &own, NULL) == 0);
    left = load(argv[1]);
    right = load(argv[2]);
    must(left != NULL && right != NULL && left != right);
    must(left->open("left", 1) == 0);
    fault();
    must(right->open("right", 0) == 0);
    must(left->address() != right->address());
    run_threads();
    must(left->check(N_EACH) == 0 && right->check(N_EACH) == 0);
    must(left->add(add_right) == N_EACH + 1);
    must(right->add(add_left) == N_EACH + 2);
    must(left->check(N_EACH + 2) == 0 && right->check(N_EACH + 2) == 0);
    check_errors();
    fault();
    check_fork();
    check_touch();
    must(left->add(NULL) == N_EACH + 4);
    must(left->close() == 0);
    fault();
    must(right->add(NULL) == N_EACH + 5); /* its faults are still noticed */
    must(right->close() == 0);
    fault();
    printf("twice: two libraries, %d transactions each\n", N_EACH + 5);
    return EXIT_SUCCESS;
}
