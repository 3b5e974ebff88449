/* SPDX-License-Identifier: MIT */
/*
 * errata_listings.c -- listings of the Thesis as printed, to see what they do.
 *
 * The numbers of pages are smaller; what is wrong is left as it is.  check_errata.sh runs
 * this, and knows the answers.  Usage: errata_listings 1-1|1-2|4-1|4-1-volatile, in an
 * empty directory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Figure 4-1(a): does a compiler that optimizes read the pages at all?  They cannot be read. */
static void
page_touch(int is_volatile)
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

int
main(int argc, char **argv)
{
    const char *figure = argc > 1 ? argv[1] : "";

    if (strcmp(figure, "1-1") == 0) {
        program_b();
    } else if (strcmp(figure, "1-2") == 0) {
        program_c();
    } else {
        page_touch(strcmp(figure, "4-1-volatile") == 0);
    }
    return 0;
}
