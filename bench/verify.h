/* SPDX-License-Identifier: MIT */
/*
 * verify.h -- does a system hold what was inserted, and nothing else?
 */
#ifndef XBENCH_VERIFY_H
#define XBENCH_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "system.h"

/*
 * bench_verify -- walk all records, then look up a sample.
 *
 * in   seed, count  the records are bench_key(seed, 0 .. count - 1)
 * out  text         words if something is wrong and the system has none for it
 * ret  0; EBADMSG if the records are not as they should be, text says how; or a code of
 *      the system, text empty.
 */
int bench_verify(const struct bench_system *system, void *handle, uint64_t seed,
                 uint64_t count, char *text, size_t text_bytes);

#endif /* XBENCH_VERIFY_H */
