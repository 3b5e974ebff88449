/* SPDX-License-Identifier: MIT */
/*
 * group_file.h -- the mapped file of the tests of a group: records, one behind the other.
 */
#ifndef XAC_TEST_GROUP_FILE_H
#define XAC_TEST_GROUP_FILE_H

#include <stdint.h>

#define GROUP_FILE_BYTES ((uint64_t)8 << 20)
#define GROUP_RECORDS    (GROUP_FILE_BYTES / 8 - 1)

struct group_file {
    uint64_t n;
    uint64_t record[GROUP_RECORDS];
};

#endif /* XAC_TEST_GROUP_FILE_H */
