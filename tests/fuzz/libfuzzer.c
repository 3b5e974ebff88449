/* SPDX-License-Identifier: MIT */
/*
 * libfuzzer.c -- the targets under libFuzzer: XAC_FUZZ=name says which; XAC_FUZZ=list prints their names (scripts/fuzz.sh).
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *target;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("XAC_FUZZ");

    (void)argc;
    (void)argv;
    if (name != NULL && strcmp(name, "list") == 0) {
        for (size_t i = 0; (target = fuzz_target_at(i)) != NULL; i++)
            (void)puts(target->name);
        exit(0);
    }
    for (size_t i = 0; name != NULL && (target = fuzz_target_at(i)) != NULL; i++) {
        if (strcmp(target->name, name) == 0)
            return 0;
    }
    fuzz_fail("no target: XAC_FUZZ=%s", name != NULL ? name : "");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target->run(data, size);
    return 0;
}
