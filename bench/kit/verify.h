/* SPDX-License-Identifier: MIT */
/*
 * verify.h -- does a system hold what the workload leaves, and nothing else?
 */
#ifndef XBENCH_VERIFY_H
#define XBENCH_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "bench/kit/system.h"
#include "bench/kit/workload.h"

/*
 * bench_verify -- walk all records, then look up a sample.
 *
 * in   job   all its steps have been done
 * out  text  words if something is wrong and the system has none for it
 * ret  0; EBADMSG if the records are not as they should be, text says how; or a code of
 *      the system, text empty.
 */
int bench_verify(const struct bench_system *system, void *handle,
                 const struct bench_job *job, char *text, size_t text_bytes);

#endif /* XBENCH_VERIFY_H */
