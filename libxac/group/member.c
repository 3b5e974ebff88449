/* SPDX-License-Identifier: MIT */
/*
 * member.c -- see member.h; cutting is in member_cut.c, detaching others in member_detach.c.
 */
#include <config.h>

#include "group/member.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "env/env.h"
#include "env/options.h"
#include "group/member_dir.h"
#include "log/recover_next.h"
#include "recovery/recover.h"
#include "shared/address_list.h"
#include "shared/group.h"

/* ---- Where it is --------------------------------------------------------------------- */

/* where -- for xac_member_look and _create. */
static int
where(const struct xac_member *m, struct xac_member_place *place)
{
    uint64_t end;
    int rc = xac_member_end(m, &end);

    if (rc != 0)
        return rc;
    *place = (struct xac_member_place){.page_size = m->master.page_size,
                                       .generation = m->master.generation,
                                       .segment_bytes = m->master.segment_bytes,
                                       .start_lsn = m->master.start_lsn,
                                       .redo_lsn = m->master.redo_lsn,
                                       .end_lsn = end,
                                       .is_standby = m->is_backup && m->is_follower};
    memcpy(place->identity, m->master.identity, sizeof place->identity);
    xac_assert(place->end_lsn >= place->redo_lsn);
    return 0;
}

int
xac_member_look(const char *dir, struct xac_group_note *note,
                struct xac_member_place *place)
{
    struct xac_member m;
    int rc = xac_member_open(&m, dir);

    if (rc == 0)
        rc = xac_member_is_one(&m);
    if (rc == 0)
        rc = where(&m, place);
    if (rc == 0)
        *note = m.note;
    xac_member_close(&m);
    return rc;
}

/* ---- Becoming a member -------------------------------------------------------------- */

/* check_files -- all that are mapped lie in the directory (6). */
static int
check_files(const struct xac_member *m)
{
    struct xac_address_list list;
    int rc;

    memset(&list, 0, sizeof list);
    rc = xac_address_list_read(&list, m->dirfd);
    for (uint32_t i = 0; rc == 0 && i < list.n_lines; i++) {
        const char *path = xac_address_list_path(&list, &list.line[i]);

        if (path[0] == '/')
            rc =
                xac_err(EINVAL,
                        "%s: outside of %s: the files of a group lie in the directory of "
                        "the environment",
                        path, m->dir);
    }
    xac_address_list_free(&list);
    return rc;
}

/* recover -- an environment of its own; the generation that begins is the one that the group goes on from. */
static int
recover(struct xac_member *m)
{
    struct xac_recover_options options = {.dry_run = false};
    int rc = xac_recover_dir(m->dirfd, &options, NULL, &m->master);

    xac_assert(!m->is_member);
    xac_kill_point("create recovered");
    return rc == 0 ? xac_member_stand(m, m->master.start_lsn) : rc;
}

/* become -- with the gate. */
static int
become(struct xac_member *m, const struct xac_group_note *note)
{
    int rc = m->is_member ? 0 : check_files(m);

    if (rc == 0 && !m->is_member && m->is_follower && !m->is_backup)
        rc =
            xac_err(EINVAL, "%s: its promotion was cut short: xship promote completes it",
                    m->dir);
    if (rc == 0 && !m->is_member && !m->is_follower)
        rc = recover(m);
    if (rc == 0)
        rc = xac_group_note_write(m->dirfd, note);
    return rc == 0 ? xac_member_read_notes(m) : rc;
}

int
xac_member_create(const char *dir, const struct xac_group_note *note,
                  struct xac_member_place *place)
{
    struct xac_member m;
    int rc;

    if (note->node == 0 || note->node > XAC_GROUP_NODE_MAX)
        return xac_err(EINVAL, "node %" PRIu32 ": not from 1 to %d", note->node,
                       XAC_GROUP_NODE_MAX);
    rc = xac_member_open(&m, dir);
    if (rc == 0)
        rc = become(&m, note);
    if (rc == 0 && place != NULL)
        rc = where(&m, place);
    xac_member_close(&m);
    return rc;
}

/* ---- Leading ------------------------------------------------------------------------ */

/* daemon_options -- of an environment that the daemon opens. */
static int
daemon_options(const struct xac_env_options *from, struct xac_env_options *o)
{
    const bool is_set[XAC_OPTION_END] = {false};
    int rc = 0;

    if (from != NULL) {
        *o = *from;
    } else {
        xac_options_default(o);
        rc = xac_options_outside(is_set, o);
    }
    xac_assert(o->standbyp == NULL);
    o->is_daemon = true;
    return rc;
}

/* may_lead -- is it a member, and a standby? */
static int
may_lead(const char *dir)
{
    struct xac_member m;
    int rc = xac_member_open(&m, dir);

    if (rc == 0)
        rc = xac_member_is_one(&m);
    if (rc == 0 && !(m.is_backup && m.is_follower))
        rc = xac_err(EINVAL, "%s: it has led before: its log has to be cut first", dir);
    xac_member_close(&m);
    return rc;
}

int
xac_member_lead(const char *dir, const struct xac_lineage_line *line,
                const struct xac_env_options *options, struct xac_env **envp)
{
    struct xac_env_options o;
    int rc;

    if (!xac_lineage_is_sound(line) || line->start_lsn != xac_next_start(line->end_lsn))
        return xac_err(EINVAL,
                       "generation %" PRIu32 " cannot begin at LSN %" PRIu64
                       " behind LSN %" PRIu64,
                       line->generation, line->start_lsn, line->end_lsn);
    rc = may_lead(dir);
    if (rc == 0)
        rc = daemon_options(options, &o);
    if (rc != 0)
        return rc;
    o.leads = line;
    rc = xac_env_open(dir, XAC_DURABLE, &o, envp);
    if (rc == 0)
        (*envp)->options.leads = NULL; /* the caller's */
    xac_assert(rc != 0 || xac_group_leads(*envp));
    return rc;
}

int
xac_member_attach(const char *dir, struct xac_env **envp)
{
    int dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct xac_env_options o;
    struct xac_group_note note;
    int rc;

    if (dirfd < 0)
        return xac_err(errno, "%s", dir);
    rc = xac_group_note_read(dirfd, &note);
    (void)xac_sys.close(dirfd);
    if (rc == ENOENT)
        rc =
            xac_err(XAC_ENOTENV, "%s: no member of a group (no %s)", dir, XAC_GROUP_NAME);
    if (rc == 0)
        rc = daemon_options(NULL, &o);
    return rc == 0 ? xac_env_open(dir, XAC_DURABLE, &o, envp) : rc;
}

void
xac_member_raise(struct xac_env *env, uint64_t lsn)
{
    xac_assert(lsn != 0);
    xac_group_raise(env, lsn);
}

void
xac_member_depose(struct xac_env *env, const char *leader)
{
    xac_assert(leader != NULL);
    xac_group_set_leader(env, leader);
    xac_group_depose(env);
}
