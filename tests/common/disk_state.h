/* SPDX-License-Identifier: MIT */
/*
 * disk_state.h -- what a crash state is made of; for disk.c and disk_write.c.
 */
#ifndef XAC_TEST_DISK_STATE_H
#define XAC_TEST_DISK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_ROOM 64u

struct entry {
    char name[NAME_ROOM];
    uint64_t ino;
};

struct names {
    struct entry *entry;
    size_t n;
};

/* A file of a crash state. */
struct file {
    uint64_t ino;
    bool is_dir, is_log, is_users, is_owned;
    uint8_t *bytes;
    uint64_t size, hash;
    struct names names;
};

struct disk_state {
    uint64_t root, max_ino;
    struct file *file;
    size_t n_files;
};

/* The file with a number; every number in a directory has one. */
const struct file *disk_state_find(const struct disk_state *s, uint64_t ino);

#endif /* XAC_TEST_DISK_STATE_H */
