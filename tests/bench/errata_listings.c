/* SPDX-License-Identifier: MIT */
/*
 * errata_listings.c -- listings of the Thesis as printed, to see what they do.
 *
 * The numbers of pages are smaller; what is wrong is left as it is.  check_errata.sh runs
 * this, and knows the answers.  Usage: errata_listings FIGURE, one of `listings`, in an empty
 * directory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGESIZE 4096

static int fileLength = 100;

/* Page k begins with the number k + 1. */
static int
make_file(void)
{
    int fd = open("input.db", O_RDWR | O_CREAT | O_TRUNC, 0666);

    for (int k = 0; k < fileLength; k++) {
        int value = k + 1;

        if (pwrite(fd, &value, sizeof(value), (off_t)k * PAGESIZE) != sizeof(value)) {
            exit(2);
        }
    }
    if (ftruncate(fd, (off_t)fileLength * PAGESIZE) != 0) {
        exit(2);
    }
    return fd;
}

/* Figure 1-1, Program B: what it stores, beside the sum of what it has read. */
static void
program_b(void)
{
    int i, j, sum = 0, fd = make_file(), value, stored;

    for (j = 0; j < 5; j++) {
        i = rand() % fileLength;
        lseek(fd, 4096 * i, SEEK_SET);
        if (read(fd, &value, 4) != 4) {
            exit(2);
        }
        sum += value;
    }
    i = rand() % fileLength;
    lseek(fd, 4096 * i, SEEK_SET);
    if (write(fd, &value, 4) != 4) { /* line 22 */
        exit(2);
    }
    if (pread(fd, &stored, 4, (off_t)4096 * i) != 4) {
        exit(2);
    }
    printf("%s\n", stored == sum     ? "the sum"
                   : stored == value ? "the last number"
                                     : "neither");
    close(fd);
}

/* Figure 1-2, Program C: how many of its pages are still mapped after munmap(x, fileLength). */
static void
program_c(void)
{
    int fd = make_file(), mapped = 0;
    char *x =
        mmap(0, (size_t)4096 * fileLength, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char resident;

    munmap(x, fileLength); /* line 22 */
    for (int k = 0; k < fileLength; k++) {
        mapped += mincore(x + (size_t)4096 * k, 4096, &resident) == 0;
    }
    printf("%d of %d\n", mapped, fileLength);
    close(fd);
}

/* Figure 1-5, Program E, with indices that are right: six pages of five, so one is drawn twice. */
static void
program_e(bool skips)
{
    enum {
        pages = 5
    };
    pthread_mutex_t pageLocks[pages];
    bool isLocked[pages] = {false};
    pthread_mutexattr_t tells;
    int waits = 0;

    pthread_mutexattr_init(&tells);
    pthread_mutexattr_settype(&tells, PTHREAD_MUTEX_ERRORCHECK);
    for (int k = 0; k < pages; k++) {
        pthread_mutex_init(&pageLocks[k], &tells);
    }
    for (int j = 0; j < 6; j++) {
        int i = rand() % pages;

        if (skips && isLocked[i]) {
            continue;
        }
        waits += pthread_mutex_lock(&pageLocks[i]) == EDEADLK; /* lines 7 and 12 */
        isLocked[i] = true;
    }
    printf("%s\n", waits > 0 ? "it waits for itself" : "it ends");
}

/* Figure 1-5, Program D: two processes, of which one has the lock; does the other one get it? */
static void
program_d(bool isShared)
{
    pthread_mutex_t own;
    pthread_mutex_t *globalLock = &own;
    pthread_mutexattr_t attributes;
    int has[2];
    pid_t pid;

    pthread_mutexattr_init(&attributes);
    if (isShared) {
        globalLock = mmap(0, sizeof(*globalLock), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    }
    pthread_mutex_init(globalLock, &attributes);
    if (pipe(has) != 0) {
        exit(2);
    }
    pid = fork();
    if (pid == 0) {
        pthread_mutex_lock(globalLock); /* line 4 */
        _exit(write(has[1], "", 1) == 1 ? 0 : 2);
    }
    close(has[1]);
    if (read(has[0], &(char){0}, 1) != 1) {
        exit(2);
    }
    printf("%s\n",
           pthread_mutex_trylock(globalLock) == 0 ? "both are inside" : "one is inside");
    fflush(stdout);
    waitpid(pid, NULL, 0);
}

/* Figure 4-1(a): does a compiler that optimizes read the pages at all?  They cannot be read. */
static void
page_touch(bool is_volatile)
{
    int n = 16, i, value;
    int *x = mmap(0, (size_t)n * PAGESIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (i = 0; i < n; i++) {
        if (is_volatile) {
            value = ((volatile int *)x)[i * PAGESIZE / sizeof(int)];
        } else {
            value = x[i * PAGESIZE / sizeof(int)];
        }
        (void)value;
    }
    printf("nothing was read\n");
}

static const struct {
    const char *figure;
    void (*plain)(void);
    void (*run)(bool is_right);
    bool is_right;
} listings[] = {
    {"1-1", program_b, NULL, false},   {"1-2", program_c, NULL, false},
    {"1-5-D", NULL, program_d, false}, {"1-5-D-shared", NULL, program_d, true},
    {"1-5-E", NULL, program_e, false}, {"1-5-E-skips", NULL, program_e, true},
    {"4-1", NULL, page_touch, false},  {"4-1-volatile", NULL, page_touch, true},
};

int
main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(listings) / sizeof(listings[0]); i++) {
        if (strcmp(argv[1], listings[i].figure) != 0) {
            continue;
        }
        if (listings[i].plain != NULL) {
            listings[i].plain();
        } else {
            listings[i].run(listings[i].is_right);
        }
        return 0;
    }
    fprintf(stderr, "usage: errata_listings FIGURE\n");
    return 2;
}
