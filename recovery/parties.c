/* SPDX-License-Identifier: MIT */
/*
 * parties.c -- see parties.h.
 */
#include <config.h>

#include "parties.h"

#include <ctype.h>
#include <inttypes.h>

/* put_command -- a process chooses its name: no character that a terminal would obey. */
static void
put_command(const struct xac_party *p, char name[sizeof p->command])
{
    for (size_t i = 0; i < sizeof p->command; i++) {
        unsigned char c = (unsigned char)p->command[i];

        name[i] = c == 0 || isprint(c) ? (char)c : '?';
    }
    name[sizeof p->command - 1] = '\0';
}

static void
print_party(FILE *f, const struct xac_party *p)
{
    char waits[64] = "", lost[64] = "", name[sizeof p->command];

    put_command(p, name);
    if (p->waits_for != XAC_PARTY_NOTHING)
        (void)snprintf(waits, sizeof waits, "%s of %" PRIu64 " %.1f s", look_wait_word(p),
                       p->waits_pid, (double)p->waits_ns / 1e9);
    if (p->failed_kind != XAC_CONFLICT_NONE)
        (void)snprintf(lost, sizeof lost, "%s %" PRIu64 " %.1f s ago",
                       look_conflict_word(p), p->failed_pid, (double)p->failed_ns / 1e9);
    fprintf(f,
            "%8" PRIu64 " %7" PRIu64 " %-15s %-7s %-7s %-10s %6.1f %7" PRIu64 " %7" PRIu64
            " %7" PRIu64 " %8" PRIu64 "  %-22s %s\n",
            p->pid, p->tid, name, look_process_word(p), look_engine_word(p),
            look_kind_word(p), (double)p->age_ns / 1e9, p->pages_read, p->pages_written,
            p->versions_held, p->log_held, waits, lost);
}

void
parties_print(FILE *f, const struct look *look, const char *front)
{
    fprintf(f, "%s%8s %7s %-15s %-7s %-7s %-10s %6s %7s %7s %7s %8s  %-22s %s\n", front,
            "PID", "TID", "COMMAND", "PROCESS", "ENGINE", "KIND", "AGE s", "READ",
            "WRITTEN", "HELD", "LOG HELD", "WAITS FOR", "LOST TO");
    for (size_t i = 0; i < look->n_parties; i++)
        print_party(f, &look->party[i]);
}
