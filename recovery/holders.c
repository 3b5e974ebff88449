/* SPDX-License-Identifier: MIT */
/*
 * holders.c -- see holders.h.
 */
#include <config.h>

#include "holders.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "base/sys.h"
#include "shared/registry.h"

/* Between two glimpses: longer than a lock is held that is not held for long. */
#define GLIMPSES_NS 100000000

static const struct {
    const char *name;
    size_t at;
    bool is_log; /* of durable environments only                                        */
} locks[] = {
    {"publish", offsetof(struct xac_control, chain.publish), false},
    {"flush", offsetof(struct xac_control, log.flush), true},
    {"prepare", offsetof(struct xac_control, log.prepare), true},
    {"gc", offsetof(struct xac_control, chain.gc), false},
    {"grow", offsetof(struct xac_control, versions.grow), false},
    {"files", offsetof(struct xac_control, files_lock), false},
    {"checkpoint", offsetof(struct xac_control, checkpoint), false},
    {"reap", offsetof(struct xac_control, reap), false},
};

#define N_LOCKS (sizeof locks / sizeof locks[0])
_Static_assert(N_LOCKS + 1 <= HOLDERS_MAX, "room for each, and for the turn");

/* glimpse -- at all of them; ret whether one is held. */
static bool
glimpse(const struct xac_env *env, struct xac_holder out[N_LOCKS])
{
    bool is_held = false;

    for (size_t i = 0; i < N_LOCKS; i++) {
        const uint8_t *at = (const uint8_t *)env->ctl + locks[i].at;

        out[i] = (struct xac_holder){.tid = 0};
        if (!locks[i].is_log || xac_env_is_durable(env))
            xac_lock_holder((const struct xac_lock *)(const void *)at, &out[i]);
        is_held = is_held || out[i].tid != 0;
    }
    return is_held;
}

/* process_of -- of a thread; 0 if it cannot be seen from here. */
static uint32_t
process_of(const struct xac_env *env, uint32_t tid)
{
    char path[40], line[256];
    struct stat own;
    uint32_t pid = 0;
    FILE *f;

    if (stat("/proc/self/ns/pid", &own) != 0 || own.st_ino != env->ctl->pid_namespace)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", tid);
    f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "Tgid: %" SCNu32, &pid) == 1)
            break;
    }
    if (f != NULL)
        (void)fclose(f);
    return pid;
}

/* turn_now -- who has the turn: a word that comes only once (layout.h); 0: nobody. */
static uint64_t
turn_now(const struct xac_env *env)
{
    /* Relaxed: a glimpse. */
    return atomic_load_explicit(&env->ctl->turn, memory_order_relaxed);
}

/* pid_with -- the process whose transaction has the turn; 0: its slot is not there. */
static uint32_t
pid_with(const struct xac_env *env, uint64_t turn)
{
    uint64_t slot = (turn & XAC_TURN_SLOT_MASK) - 1;
    uint64_t word;

    /* Acquire: pairs with the release in xac_txn_claim. */
    if (slot >= atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire))
        return 0;
    /* Relaxed: a glimpse. */
    word = atomic_load_explicit(&xac_txn_at(env, slot)->word, memory_order_relaxed);
    return xac_participant_at(env, xac_txn_participant(word))->pid;
}

size_t
holders_take(const struct xac_env *env, struct holder out[HOLDERS_MAX])
{
    struct xac_holder first[N_LOCKS], then[N_LOCKS];
    uint64_t turn = turn_now(env);
    size_t n = 0;

    if (!glimpse(env, first) && turn == 0)
        return 0;
    xac_sleep_ns(GLIMPSES_NS);
    (void)glimpse(env, then);
    for (size_t i = 0; i < N_LOCKS; i++) {
        uint64_t held_ns = then[i].held_ns;

        if (then[i].tid == 0 || then[i].tid != first[i].tid
            || then[i].n_taken != first[i].n_taken)
            continue;
        out[n++] = (struct holder){
            .name = locks[i].name,
            .pid = process_of(env, then[i].tid),
            .tid = then[i].tid,
            .held_ns = held_ns > GLIMPSES_NS ? held_ns : GLIMPSES_NS,
        };
    }
    if (turn != 0 && turn_now(env) == turn)
        out[n++] = (struct holder){
            .name = "turn",
            .pid = pid_with(env, turn),
            .held_ns = GLIMPSES_NS,
        };
    return n;
}

void
holders_print(const struct holder *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("  %s%s: held by %s %" PRIu32 " for %.1f s or longer\n", h[i].name,
               h[i].tid != 0 ? " lock" : "",
               h[i].pid != 0 ? "process" : "a thread that calls itself",
               h[i].pid != 0 ? h[i].pid : h[i].tid, (double)h[i].held_ns / 1e9);
}

void
holders_json(struct json *j, const struct holder *h, size_t n)
{
    json_array(j, "locks_held");
    for (size_t i = 0; i < n; i++) {
        json_object(j, NULL);
        json_string(j, "lock", h[i].name);
        json_number(j, "pid", h[i].pid);
        json_number(j, "tid", h[i].tid);
        json_number(j, "held_ns", h[i].held_ns);
        json_end(j);
    }
    json_end(j);
}
