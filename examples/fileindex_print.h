/* SPDX-License-Identifier: MIT */
/*
 * fileindex_print.h -- how a path and its record look on stdout.
 */
#ifndef FILEINDEX_PRINT_H
#define FILEINDEX_PRINT_H

#include "fileindex_paths.h"

enum fi_style {
    FI_LONG,  /* mode, size, time of change, path                                     */
    FI_PATHS, /* the path alone                                                       */
    FI_NUL,   /* the same, ended by a zero byte instead of a newline                  */
    FI_JSON   /* an object on a line                                                  */
};

void fi_print(enum fi_style style, const char *path, const struct fi_record *record);

/*
 * Print a JSON string.  A byte that is not part of valid UTF-8 becomes the escape \udcXX,
 * XX being the byte, so that nothing is lost (Python calls this "surrogateescape").
 */
void fi_print_json(const char *text);

#endif /* FILEINDEX_PRINT_H */
