/* SPDX-License-Identifier: MIT */
/*
 * actions.c -- what a transaction does when it commits or is rolled back: memory that it has allocated
 * and freed, and functions of the program.
 */
#include <config.h>

#include <stdlib.h>

#include <xac.h>

#include "itm.h"

void
xac_itm_act(struct xac_itm *t, const struct xac_itm_action *action)
{
    t->actions =
        (struct xac_itm_action *)xac_itm_grow(t->actions, &t->max_actions,
                                              t->n_actions + 1, sizeof *t->actions);
    t->actions[t->n_actions++] = *action;
}

void
xac_itm_act_forget(struct xac_itm *t, const void *arg)
{
    for (size_t i = t->n_actions; i-- > 0;) {
        struct xac_itm_action *a = &t->actions[i];

        if (a->kind == XAC_ITM_ALLOCATED && a->arg == arg) {
            a->arg = NULL;
            return;
        }
    }
}

/* xfree -- in the open transaction of libxac. */
static void
xfree(const struct xac_itm_action *a)
{
    int rc = xac_free(a->base, a->arg);

    if (rc != 0)
        xac_itm_stop("xFree(%p): %s (%s)", a->arg, xac_strerror(rc), xac_last_error());
}

void
xac_itm_act_back(struct xac_itm *t, size_t n, bool with_segments)
{
    while (t->n_actions > n) {
        struct xac_itm_action a = t->actions[--t->n_actions];

        if (a.kind == XAC_ITM_MALLOCED && with_segments)
            xfree(&a);
        if (a.kind == XAC_ITM_UNDO || (a.kind == XAC_ITM_ALLOCATED && a.arg != NULL))
            a.fn(a.arg);
    }
}

void
xac_itm_act_before(const struct xac_itm *t)
{
    for (size_t i = 0; i < t->n_actions; i++) {
        if (t->actions[i].kind == XAC_ITM_XFREED)
            xfree(&t->actions[i]);
    }
}

void
xac_itm_act_after(struct xac_itm *t)
{
    struct xac_itm_action *actions = t->actions;
    size_t n = t->n_actions;

    if (n == 0)
        return;
    /* A function of the program may begin a transaction, which gets a list of its own. */
    t->actions = NULL;
    t->n_actions = 0;
    t->max_actions = 0;
    for (size_t i = 0; i < n; i++) {
        if (actions[i].kind == XAC_ITM_FREED || actions[i].kind == XAC_ITM_COMMIT)
            actions[i].fn(actions[i].arg);
    }
    free(actions);
}

XAC_ITM_API void _ITM_addUserCommitAction(void (*fn)(void *arg), uint64_t id, void *arg);
void
_ITM_addUserCommitAction(void (*fn)(void *arg), uint64_t id, void *arg)
{
    (void)
        id; /* that of the outermost transaction, or of a nested one, which ends with it */
    xac_itm_act(xac_itm_now,
                &(struct xac_itm_action){.kind = XAC_ITM_COMMIT, .fn = fn, .arg = arg});
}

XAC_ITM_API void _ITM_addUserUndoAction(void (*fn)(void *arg), void *arg);
void
_ITM_addUserUndoAction(void (*fn)(void *arg), void *arg)
{
    xac_itm_act(xac_itm_now,
                &(struct xac_itm_action){.kind = XAC_ITM_UNDO, .fn = fn, .arg = arg});
}
