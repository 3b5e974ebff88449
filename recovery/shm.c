/* SPDX-License-Identifier: MIT */
/*
 * shm.c -- see shm.h.
 */
#include <config.h>

#include "shm.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "env/region_clear.h"
#include "shared/region.h"
#include "tool.h"

/* A region without a head may be just being made. */
#define INCOMPLETE_AGE_S 60

struct listing {
    bool is_json, remove;
    struct json json;
    uint64_t n, n_removed;
};

/* maps_says -- is a name among what a process maps?  ret 1 yes, 0 no, -1 one may not look. */
static int
maps_says(const char *pid, const char *name)
{
    char path[300], line[4400];
    int found = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%s/maps", pid);
    f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT || errno == ESRCH ? 0 : -1;
    while (found == 0 && fgets(line, sizeof line, f) != NULL)
        found = strstr(line, name) != NULL;
    (void)fclose(f);
    return found;
}

/* is_mapped -- by any process?  For regions without locks; root can tell, others cannot. */
static bool
is_mapped(const char *path)
{
    const char *name = strrchr(path, '/');
    bool is = false;
    struct dirent *e;
    DIR *d;

    if (geteuid() != 0 || (d = opendir("/proc")) == NULL)
        return true;
    while (!is && (e = readdir(d)) != NULL) {
        if (isdigit((unsigned char)e->d_name[0]))
            is = maps_says(e->d_name, name) != 0;
    }
    (void)closedir(d);
    return is;
}

/* use_words -- and whether it may be removed. */
static const char *
use_words(const char *path, const struct xac_region_info *info, bool *is_lostp)
{
    *is_lostp = false;
    if (info->use == XAC_REGION_USED)
        return "in use";
    if (info->kind == XAC_REGION_OTHER) {
        *is_lostp = !is_mapped(path);
        return *is_lostp ? "unused" : "unknown";
    }
    if (info->kind == XAC_REGION_INCOMPLETE && info->age_s < INCOMPLETE_AGE_S)
        return "being made";
    *is_lostp = true;
    return "unused";
}

/* make_plain -- what a stranger has written must not move the cursor. */
static void
make_plain(char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
    }
}

static void
say(struct listing *l, const char *path, const struct xac_region_info *info,
    const char *words)
{
    const char *dir = info->dir != NULL ? info->dir : "";

    if (!l->is_json) {
        printf("%s %" PRIu64 " KiB, user %u, %s%s%s\n", path, info->bytes >> 10,
               (unsigned)info->uid, words, *dir != '\0' ? ", of " : "", dir);
        return;
    }
    json_object(&l->json, NULL);
    json_string(&l->json, "region", path);
    json_number(&l->json, "bytes", info->bytes);
    json_number(&l->json, "user", info->uid);
    json_number(&l->json, "version", info->version);
    json_string(&l->json, "use", words);
    json_string(&l->json, "directory", dir);
    json_end(&l->json);
}

/* remove_lost -- the part in the environment's directory, too, if that is still there. */
static void
remove_lost(const char *path, const struct xac_region_info *info)
{
    struct xac_identity now;
    int dirfd = -1;

    if (info->dir != NULL)
        dirfd =
            xac_sys.openat(AT_FDCWD, info->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dirfd >= 0
        && (xac_identity_of(dirfd, &now) != 0
            || !xac_identity_is_same(&now, &info->home))) {
        (void)xac_sys.close(dirfd);
        dirfd = -1;
    }
    xac_region_remove(dirfd, path);
    if (dirfd >= 0)
        (void)xac_sys.close(dirfd);
}

/* list_one -- for xac_region_scan. */
static int
list_one(void *arg, const char *path)
{
    struct listing *l = (struct listing *)arg;
    struct xac_region_info info;
    const char *words;
    bool is_lost;

    if (xac_region_look(AT_FDCWD, path, &info) != 0) {
        if (!l->is_json)
            printf("%s cannot be read\n", path);
        return 0;
    }
    words = use_words(path, &info, &is_lost);
    is_lost = is_lost && (geteuid() == 0 || geteuid() == info.uid);
    l->n++;
    if (l->remove && is_lost) {
        remove_lost(path, &info);
        words = "removed";
        l->n_removed++;
    }
    make_plain(info.dir);
    say(l, path, &info, words);
    xac_region_info_fini(&info);
    return 0;
}

int
shm_list(bool is_json, bool remove)
{
    struct listing l = {.is_json = is_json, .remove = remove};
    const char *dir = xac_region_shm_dir();
    int rc;

    if (is_json)
        json_array(&l.json, NULL);
    rc = xac_region_scan(dir, list_one, &l);
    if (is_json)
        json_end(&l.json);
    else if (rc == 0)
        printf("%s: %" PRIu64 " control region%s, %" PRIu64 " removed\n", dir, l.n,
               plural(l.n), l.n_removed);
    return rc == 0 ? 0 : xac_err(rc, "%s", dir);
}
