/* SPDX-License-Identifier: MIT */
/*
 * view.h -- a mapping of a file in one process or thread: what each page of it shows.
 *
 * WHAT      A private mapping of the file, without access at first.  Pages that have no
 *           version in the store are shown straight from the file; versions are copied
 *           into the private page; a written page is a private copy until the commit.
 *           (How that is done depends on the engine, fault_engine.h.)  A view
 *           shows a part of its file; page numbers of a view count from its base, those
 *           in page ids from the start of the file.
 * NOT HERE  Which version is right (ctree.h), conflicts (conflict.h).
 * OWNER     A context, the process's or a thread's.  Touched by the thread that runs
 *           the transaction, in the fault handler too, and outside transactions by the
 *           thread that has the context's turn.  The process's list changes under env->threads, too.
 *
 * A page is
 *   absent     no access; the next access traps
 *   readable   shows the version that belongs to the transaction
 *   dirty      may be written; private to the transaction.  Behind a savepoint it is open, or closed: then
 *              the next store is to be noticed again (saved.h)
 *   warm       readable, and may be written unnoticed: found by comparing (view_warm.c)
 *   loose      readable, and may be written once it has been announced: the program has
 *              promised that (XAC_OPT_CHECKING)
 * While the process is alone (alone.h), pages stay readable between transactions.  Under the serial
 * policy each process counts as alone, and the next begin brings the pages up to date, in place if
 * they may be stored to; a view in which that is not so often gets memory with a twin (area.h).  If the
 * engine maps the file, the whole view is *open*: pages are readable unless they are hidden,
 * one by one.  If it fills memory, those that have been touched stay, up to a number; and
 * beside others, too, those that queries have touched stay *kept* until a transaction begins
 * that is no query: the next query drops those that have been written meanwhile.
 *
 * INVARIANTS
 *   (1) Outside a transaction nothing is dirty, and unless the process is alone,
 *       everything is absent but for what is kept.  Warm pages then hold the versions of the last
 *       transaction, and so do loose ones if the program keeps its promise.
 *   (2) copy[p] says what p's private copy holds: nothing, something unknown, or the
 *       version published as a certain number.
 *   (3) A readable page shows the newest version at or below the transaction's parent; in a query
 *       that knows that it is cut off (is_cut) it may show zeros.
 *   (4) Views of one context that show the same page of a file are aliases there.  If the
 *       page is dirty in one of them, then in the others it is absent, or dirty and the
 *       same memory (view_alias.c): there is one working copy.  With XAC_OPT_FRAMES they
 *       have the same memory for all their pages, so it may be readable there, too.
 *   (5) In views that share all their memory a page has memory if one of them has it
 *       readable or dirty, and only then; and outside a transaction none has.
 */
#ifndef XAC_VIEW_H
#define XAC_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xac.h>

#include "base/annot.h"
#include "base/identity.h"
#include "fault/fault_engine.h"
#include "shared/ptab.h"
#include "txn/slot.h"

struct xac_env;
struct xac_guard;

/* States of a page in a view. */
enum {
    XAC_PAGE_ABSENT = 0, /* no access; in a view that is open: readable and right    */
    XAC_PAGE_READABLE = 1,
    XAC_PAGE_DIRTY = 2,
    XAC_PAGE_HIDDEN = 3,  /* in a view that is open: no access                        */
    XAC_PAGE_WARM = 4,    /* may be written, transaction or not: see view_warm.c      */
    XAC_PAGE_LOOSE = 5,   /* is writable, and dirty when it has been announced        */
    XAC_PAGE_SPILLED = 6, /* written, its copy in a file, no access: see outofcore.h */
};

/* What a private copy holds. */
#define XAC_COPY_NONE       0
#define XAC_COPY_UNKNOWN    1
#define XAC_COPY_PERHAPS    2 /* none, unless the transaction has written the page      */
#define XAC_COPY_SHARED     3 /* dirty, and in memory shared by aliases                    */
#define XAC_COPY_OF(commit) ((commit) + 4)

/* Pages of a view that may be warm at a time, and commits of other pages after which one is
   not any more. */
#define XAC_WARM_MAX 4
#define XAC_WARM_FOR 16

/* So many pages are remembered with their last commits, to see which are written again soon. */
#define XAC_RECENT_MAX 8

/* Per page; lies in a private mapping, so that only touched parts take memory. */
struct xac_view_page {
    uint64_t copy;  /* XAC_COPY_...                                                 */
    uint32_t entry; /* number of its set entry + 1 in the running transaction, or 0 */
    uint32_t state; /* XAC_PAGE_...                                                 */
};

/* Pages, in the order in which they are come to. */
struct xac_span {
    uint64_t low, high; /* they lie in [low, high)                                     */
    uint64_t next;      /* behind the last one                                         */
    uint64_t n_runs;    /* of neighbours; 0 nothing                                    */
};

/* What is known of a view's pages. */
struct xac_view_pages {
    struct xac_view_page *at; /* area.n_pages of them                                   */
    bool is_lost; /* it is not known which pages have access: see xac_view_renew        */
    uint64_t n_copies; /* pages with a private copy: neither NONE nor SHARED            */
    uint64_t low,
        high; /* pages touched by the running transaction lie in [low, high) ... */
    uint64_t n_touched; /* ... and there are so many of them, or fewer                  */
    /* Sequences (view_many.c). */
    uint64_t ahead_next; /* the page whose touch would continue a sequence ...          */
    uint64_t ahead_n;    /* ... in which so many pages were filled last                 */
    uint64_t asked;      /* up to this page the file has been asked for ...             */
    uint64_t asked_n;    /* ... in a sequence, so many pages last                       */
};

/* What stays from one transaction to the next. */
struct xac_view_staying {
    bool is_alone;  /* pages stay readable, see above ...                               */
    uint64_t epoch; /* ... since the process became alone for that time (alone.h)       */
    uint64_t retry; /* commit number at which to try that again                         */
    bool is_kept;   /* queries have left pages readable ...                             */
    uint64_t shown; /* ... as they were after this commit; while alone, too, if the policy
                       is serial                                                        */
    uint32_t
        n_dropped; /* pages that others have written, and that could not be refreshed */
    uint64_t n_begun; /* begins since each of them was looked at (view_begin.c)         */
    uint64_t hand; /* page at which the next eviction begins                           */
    struct xac_span written; /* pages to be protected again, while alone                */
    /* Warm pages (view_warm.c). */
    uint64_t warm[XAC_WARM_MAX]; /* pages, the first n_warm ...                     */
    uint32_t idle[XAC_WARM_MAX]; /* ... commits since each was written              */
    uint32_t n_warm;
    uint32_t next_recent;            /* place of the next one in ...                    */
    uint64_t recent[XAC_RECENT_MAX]; /* ... pages written last, + 1; 0 none             */
    /* Scans (view_scan.h). */
    bool is_unscannable; /* scanning has failed                                         */
    uint32_t
        n_unscanned;   /* begins until it may be scanned again, after a savepoint     */
    uint64_t n_stores; /* while alone, to readable pages: trapped, or found          */
    int64_t account;   /* ns that the other way would have saved lately               */
};

/* Written pages whose copies lie in a file (outofcore_view.c). */
struct xac_view_spill {
    int fd; /* each page at its place; 0: no file                                       */
    struct xac_handle handle;
    uint64_t n_pages; /* written to it in this transaction                              */
};

struct xac_view {
    struct xac_view *next; /* of its context                                          */
    struct xac_ctx *ctx;   /* whose transactions use it                               */
    struct xac_view
        *origin;       /* the view of the process that this is a clone of, or NULL */
    unsigned n_clones; /* of this view; under env->threads                        */
    bool is_leaving;   /* no translated transaction begins meanwhile; likewise     */
    struct xac_env *env;
    /* The file. */
    const uint8_t *file_bytes; /* mapped shared, for reading; NULL with XAC_OPT_FRAMES  */
    uint32_t file;             /* id (registry.h)                                       */
    uint64_t hold;             /* that we map it (registry.h), 0: not yet; a clone's 0  */
    int fd;                    /* read and write; see xac_view_fd                       */
    struct xac_handle handle;  /* of fd, with an origin too                             */
    struct xac_identity who;
    char *name; /* as given to xMmap                                                    */
    char *path; /* as registered                                                        */
    /* Where the segment lies, and what its pages show. */
    struct xac_area area;
    struct xac_guard *guard; /* NULL: none                                              */
    const char *fate; /* set before it is closed: what guard.h is to remember, or NULL  */
    struct xac_view_pages pages;
    struct xac_view_staying staying;
    struct xac_view_spill spill;
    struct xac_aliases *aliases; /* if other views of ctx show some of its pages        */
};

/* xac_view_of -- the view that an area is of. */
XAC_SIGSAFE static inline struct xac_view *
xac_view_of(struct xac_area *area)
{
    return (struct xac_view *)((char *)area - offsetof(struct xac_view, area));
}

/* What the engines and the dispatcher ask of views (view_access.c). */
extern const struct xac_area_owner xac_view_owner;

/* What a view is to show, and how. */
struct xac_view_wish {
    uint64_t offset; /* bytes, within the file                                         */
    size_t length;   /* bytes                                                          */
    int flags;       /* XAC_SAME_ADDRESS, XAC_MAY_MOVE                                 */
};

/* xac_view_open -- map a file; see xac_mmap_at() in xac.h.  ret 0 or an error. */
int xac_view_open(struct xac_env *env, const char *name, const struct xac_view_wish *wish,
                  struct xac_view **viewp);

/*
 * xac_view_resize -- make a view of the process, in its list and without clones, shorter
 * or longer; see xac_mremap() in xac.h.  ret 0 or an error, and it is as it was.
 */
int xac_view_resize(struct xac_view *view, size_t length, int flags);

/*
 * xac_view_clone -- a further view of a mapped file for another context, in its list; the
 * file's descriptor and shared mapping stay the origin's.  env->threads held.
 */
int xac_view_clone(struct xac_ctx *ctx, struct xac_view *origin, struct xac_view **viewp);

/*
 * xac_view_add, remove -- into and out of the process's list; the caller has its turn.
 * add     ret 0, or an error and it is not in the list.
 * remove  ret false: threads have views of it.
 */
int xac_view_add(struct xac_ctx *ctx, struct xac_view *view);
bool xac_view_remove(struct xac_ctx *ctx, struct xac_view *view);

/* xac_view_close -- unmap and free; out of the list already. */
void xac_view_close(struct xac_env *env, struct xac_view *view);

/* xac_view_close_all -- a context's views, and its list is empty. */
void xac_view_close_all(struct xac_env *env, struct xac_ctx *ctx);

/*
 * xac_view_named -- the process's view of a file, by its path or the name it was mapped as.
 * out  countp  number of views of that file
 */
struct xac_view *xac_view_named(const struct xac_env *env, const char *name,
                                unsigned *countp);

/* xac_view_at -- the context's view that an address lies in, or NULL. */
XAC_SIGSAFE struct xac_view *xac_view_at(const struct xac_ctx *ctx, const void *addr);

/* Before and after each transaction (view_begin.c, view_end.c). */
int xac_view_begin_all(struct xac_env *env, struct xac_ctx *ctx);
void xac_view_end_all(struct xac_env *env, struct xac_ctx *ctx, bool is_committed);

/*
 * xac_view_assert -- stop the program unless (1) to (5) hold for the first and last pages that the
 * transaction has touched, or if none is running, the last one has; of (3) one page is compared.
 * By the thread that has the context's turn.
 * xac_view_assert_all -- the same of each view of a context.
 */
void xac_view_assert(const struct xac_view *view, bool is_running);
void xac_view_assert_all(const struct xac_ctx *ctx, bool is_running);

/*
 * xac_view_renew -- make all pages of a view absent, whatever they are now: a system call has
 * failed when they were to be taken back.  It maps the addresses anew, as one mapping, so it takes
 * fewer mappings than there are.  If that fails as well, the view is lost: the next begin tries
 * again, and is refused until it works, for pages with access that nobody knows of would
 * break isolation.
 * ret  0 or errno.
 */
int xac_view_renew(struct xac_view *view);

/* ---- Pages that stay, and what makes them absent again (view_alone.c) ------------------ */

/* xac_view_forget -- nothing is mapped, nothing is known; if the engine maps, all pages have
   this protection.  ret 0 or errno. */
int xac_view_forget(struct xac_view *view, enum xac_protection prot);

/* xac_view_hide -- while alone: this page must trap, for the view does not hold its newest
   version.  ret 0 or errno. */
int xac_view_hide(struct xac_view *view, uint64_t page_no);

/* xac_view_enter_alone -- make the whole view readable, if few versions stand against it; if the
   engine fills, pages stay from now on as they are touched.  ret 0 or errno. */
int xac_view_enter_alone(struct xac_env *env, struct xac_view *view, uint64_t epoch);

/*
 * xac_view_leave_alone -- forget what the pages hold, and that we are alone, outside
 * transactions; all is absent again.  ret 0 or errno.
 */
int xac_view_leave_alone(struct xac_view *view);

/*
 * The private copies that all contexts of an environment keep from one transaction to the next are at most
 * this share of the memory that there is (memory.h), and those of one context at most a half of that; but
 * each context may keep so many.  Without swap space the kernel gets their memory back from nobody but us.
 */
#define XAC_COPIES_SHARE 8
#define XAC_COPIES_LEAST 64

/*
 * xac_view_evict_all -- when a transaction begins, and the views are up to date: drop private copies until no
 * more than `most` are left, and less than one for each view.
 *
 * Each view loses a part of what it has, those that its hand comes to first.  Which of them are used is not known
 * without a trap, so that they are as good as any others.  If the engine maps the file, the pages show the
 * file again.  Therefore a view that is open drops only pages that have no version any more; if too few have
 * none, it begins anew to be alone.
 *
 * in   copies  what the views have together, more than `most`
 * ret  0 or errno.
 */
int xac_view_evict_all(struct xac_ctx *ctx, uint64_t copies, uint64_t most);

/* ---- An access (view_access.c) --------------------------------------------------------- */

/*
 * xac_view_access -- steps 1 to 5 of a trap or a hint: register the access, show the
 * page.
 *
 * If there is no room to register it, the transaction will abort (XAC_CONFLICT_RESOURCE),
 * and until then only has to see its snapshot; a query needs nothing registered anyway.
 * ret  0; ENOMEM and other errno values if the page cannot be shown.
 */
XAC_SIGSAFE int xac_view_access(struct xac_env *env, struct xac_ctx *ctx,
                                struct xac_view *view, uint64_t page_no, bool is_write);

/*
 * xac_view_cut -- the query of a context has been cut off (reader_limit.h), and an access has found it
 * out.  The pages that it has touched are absent again; from now on each page that traps shows zeros,
 * and at the end all pages are dropped.  Pages that stayed from queries before stay.
 * ret 0 or errno.
 */
XAC_SIGSAFE int xac_view_cut(struct xac_ctx *ctx);

/* xac_view_shows -- does the view show the page with that id? */
XAC_SIGSAFE static inline bool
xac_view_shows(const struct xac_view *v, uint64_t page_id)
{
    return v->file == xac_page_file(page_id)
           && xac_page_no(page_id) - v->area.first < v->area.n_pages;
}

/* xac_view_page -- what a view that shows it knows of the page with that id. */
XAC_SIGSAFE static inline struct xac_view_page *
xac_view_page(const struct xac_view *v, uint64_t page_id)
{
    xac_assert_slow(xac_view_shows(v, page_id));
    return &v->pages.at[xac_page_no(page_id) - v->area.first];
}

/* xac_view_next -- the context's first view behind v (NULL: of all) that shows a page. */
XAC_SIGSAFE static inline struct xac_view *
xac_view_next(const struct xac_ctx *ctx, const struct xac_view *v, uint64_t page_id)
{
    struct xac_view *next = v == NULL ? ctx->views : v->next;

    while (next != NULL && !xac_view_shows(next, page_id))
        next = next->next;
    return next;
}

/* ---- Updates in place (view_in_place.c, in_place.h) ------------------------------------ */

/* xac_view_in_place_begin -- before a transaction or query begins: its views are updated in place, or not any
   more, as they may.  ret 0 or an error, with words. */
int xac_view_in_place_begin(struct xac_env *env, struct xac_ctx *ctx);

/* xac_view_in_place_leave -- no view of the context is updated in place; outside of transactions.  ret 0, or an
   error, with words, and some still are. */
int xac_view_in_place_leave(struct xac_env *env, struct xac_ctx *ctx);

/* xac_view_in_place_forked -- in a child, of the process's context: it is the parent's. */
void xac_view_in_place_forked(struct xac_env *env);

/* xac_view_in_place_store -- a page of such a view is to be given to the transaction for stores.  ret 0; an
   error: it must not be, and the transaction has failed. */
int xac_view_in_place_store(struct xac_ctx *ctx, struct xac_view *view, uint64_t page_no);

/* xac_view_in_place -- 1 + the page of the in-place file that holds the page of an entry, of a context that
   updates in place; 0: none does. */
uint64_t xac_view_in_place(const struct xac_ctx *ctx, const struct xac_entry *entry);

/* xac_view_in_place_restore -- undo the transaction's stores to a page that has an image; ret false: it has none,
   and is to be shown anew. */
bool xac_view_in_place_restore(struct xac_view *view, uint64_t page_no,
                               const struct xac_entry *entry);

/* xac_view_in_place_vacate -- pages of a view may be taken away: none is in the list.  ret 0 or an error. */
int xac_view_in_place_vacate(struct xac_view *view);

/* The parts of an access, for view_access.c and view_unit.c. */

/* xac_view_is_open -- is a page readable unless it is hidden? */
XAC_SIGSAFE static inline bool
xac_view_is_open(const struct xac_view *v)
{
    return v->staying.is_alone && v->area.ops->maps != NULL;
}

/* xac_view_gain -- the page holds bytes of its own now, of no known version. */
XAC_SIGSAFE static inline void
xac_view_gain(struct xac_view *v, struct xac_view_page *p)
{
    xac_assert(p >= v->pages.at);
    xac_assert(p < v->pages.at + v->area.n_pages);
    v->pages.n_copies += p->copy == XAC_COPY_NONE;
    p->copy = XAC_COPY_UNKNOWN;
}

/* xac_view_lose -- the page has no access any more, and if it was memory, holds nothing; taking
   the access is the caller's. */
XAC_SIGSAFE static inline void
xac_view_lose(struct xac_view *v, struct xac_view_page *p)
{
    xac_assert(p >= v->pages.at);
    xac_assert(p < v->pages.at + v->area.n_pages);
    p->state = xac_view_is_open(v) ? XAC_PAGE_HIDDEN : XAC_PAGE_ABSENT;
    if (v->area.ops->maps != NULL || p->copy == XAC_COPY_NONE)
        return;
    p->copy = XAC_COPY_NONE;
    v->pages.n_copies--;
}

/* xac_view_is_writable -- may the page be stored to now, without being announced? */
XAC_SIGSAFE static inline bool
xac_view_is_writable(const struct xac_view_page *p)
{
    return p->state == XAC_PAGE_DIRTY || p->state == XAC_PAGE_WARM;
}

/* xac_view_is_written -- has the transaction a working copy of the page? */
XAC_SIGSAFE static inline bool
xac_view_is_written(const struct xac_view_page *p)
{
    return p->state == XAC_PAGE_DIRTY || p->state == XAC_PAGE_SPILLED;
}

/* xac_view_is_readable -- may the page be read now, what it shows being right? */
XAC_SIGSAFE static inline bool
xac_view_is_readable(const struct xac_view *v, const struct xac_view_page *p)
{
    return p->state == XAC_PAGE_READABLE || p->state == XAC_PAGE_WARM
           || p->state == XAC_PAGE_LOOSE
           || (p->state == XAC_PAGE_ABSENT && xac_view_is_open(v));
}

/* ---- Savepoints (saved.h, view_savepoint.c) ------------------------------------------- */

/* xac_view_is_shut -- is a page, written or not, none of those that have been opened in this epoch? */
XAC_SIGSAFE bool xac_view_is_shut(const struct xac_view *view, uint64_t page_no);

/* xac_view_is_closed -- is a page dirty here, and closed: must the next store be noticed? */
XAC_SIGSAFE static inline bool
xac_view_is_closed(const struct xac_view *v, uint64_t page_no)
{
    return xac_unlikely(v->ctx->save_epoch != 0)
           && v->pages.at[page_no].state == XAC_PAGE_DIRTY
           && xac_view_is_shut(v, page_no);
}

/* xac_view_is_guarded -- is it closed, and protected for that? */
XAC_SIGSAFE bool xac_view_is_guarded(const struct xac_view *view, uint64_t page_no);

/* xac_view_written_prot -- the access of a page that has been written, here or in an alias, when it is shown
   again: none for stores if it is closed and guarded.  So no other thread stores to it unnoticed. */
XAC_SIGSAFE enum xac_protection xac_view_written_prot(const struct xac_view *view,
                                                      uint64_t page_no);

/* xac_view_may_store -- may a page be stored to at once, its stores having been noticed? */
XAC_SIGSAFE static inline bool
xac_view_may_store(const struct xac_view *v, uint64_t page_no)
{
    return v->pages.at[page_no].state == XAC_PAGE_DIRTY
           && !xac_view_is_closed(v, page_no);
}

/*
 * xac_view_keep_closed -- the closed ones of these pages are about to be stored to: they are open from
 * now on; the caller gives the access.  xac_view_open_again: and have it.  They are all dirty.
 * ret  0 or errno.
 */
XAC_SIGSAFE int xac_view_keep_closed(struct xac_view *view, uint64_t first, uint64_t end);
XAC_SIGSAFE int xac_view_open_again(struct xac_view *view, uint64_t first, uint64_t end);

/* xac_view_store_again -- a closed page is about to be stored to.  ret 0 or errno. */
XAC_SIGSAFE int xac_view_store_again(struct xac_view *view, uint64_t page_no);

/* xac_view_first_store -- a page has become dirty; nothing has been stored to it yet. */
XAC_SIGSAFE void xac_view_first_store(struct xac_view *view, uint64_t page_no);

/* xac_view_before_show, after_show -- around step 5, in a transaction that has used a savepoint; *is_donep: that
   was all of it.  ret 0 or errno. */
XAC_SIGSAFE int xac_view_before_show(struct xac_view *view, uint64_t page_no,
                                     bool is_write, bool *is_donep);
XAC_SIGSAFE int xac_view_after_show(struct xac_view *view, uint64_t page_no,
                                    bool is_write);

/*
 * xac_view_savepoint -- a new level in the running transaction.  xac_view_roll_back: to a level, which
 * stays.
 * ret  0; errno: the transaction will not commit, and if it was a roll-back, pages may be neither as
 *      they are nor as they were.
 */
int xac_view_savepoint(struct xac_ctx *ctx, uint64_t mark);
int xac_view_roll_back(struct xac_ctx *ctx, uint64_t level);

/*
 * xac_view_register -- steps 1 and 2: an entry in the set, and in the page's access list.
 * ret  the page; NULL if the region has no room: xac_view_unregistered() is the errno value.
 */
XAC_SIGSAFE int xac_view_unregistered(struct xac_ctx *ctx);
XAC_SIGSAFE struct xac_page *xac_view_register(struct xac_env *env, struct xac_ctx *ctx,
                                               struct xac_view *view, uint64_t page_no,
                                               bool is_write);

/*
 * xac_view_parent -- steps 3 and 4: the number of the state to be shown; a pending
 * transaction is brought up to date first, a query or a failed one keeps its parent.
 */
XAC_SIGSAFE uint64_t xac_view_parent(struct xac_env *env, struct xac_ctx *ctx);

/*
 * xac_view_load -- step 5: have the private page hold the newest version at or below the
 * parent, or nothing, so that the file shows.
 *
 * out  is_writablep  in: the page is writable; out: it has become so
 * ret  0 or errno.
 */
XAC_SIGSAFE int xac_view_load(struct xac_env *env, struct xac_view *view,
                              uint64_t page_no, const struct xac_page *page,
                              uint64_t parent, bool *is_writablep);

/*
 * xac_view_base_bytes -- the page as the transaction sees it without its own stores: its
 * version, or its file; with XAC_OPT_FRAMES in XAC_PLACE_SHOWN.
 *
 * in   page  NULL: it has no version
 * ret  NULL with errno.
 */
XAC_SIGSAFE const uint8_t *xac_view_base_bytes(const struct xac_view *view,
                                               uint64_t page_no,
                                               const struct xac_page *page,
                                               uint64_t parent);

/*
 * xac_view_image -- a page that the transaction has stored to, as it was before; NULL: it has not been
 * kept.  It is compared with the page at the commit: it has been used a moment ago, while the version
 * in the store may be far from the processor.
 */
const uint8_t *xac_view_image(const struct xac_ctx *ctx, uint64_t page_id);

/*
 * xac_view_file_run -- what the file holds in pages [first, first + n), without XAC_OPT_FRAMES.
 * Blank ones (registry.h) are not asked from the file system, which would make pages of zeros
 * and bring in what lies around them.
 *
 * in, out  n  pages wanted, at least 1; those that are there, at least 1
 */
XAC_SIGSAFE const uint8_t *xac_view_file_run(const struct xac_view *view, uint64_t first,
                                             uint64_t *n);

/* xac_view_show -- step 5 of a trap: give the page the access that is wanted.  ret 0 or errno. */
XAC_SIGSAFE int xac_view_show(struct xac_env *env, struct xac_view *view,
                              uint64_t page_no, const struct xac_page *page,
                              uint64_t parent, bool is_write);

/* xac_view_reach -- pages [first, end) are to be taken back after the transaction. */
XAC_SIGSAFE static inline void
xac_view_reach(struct xac_view *v, uint64_t first, uint64_t end)
{
    xac_assert(first < end);
    xac_assert(end <= v->area.n_pages);
    v->pages.low = first < v->pages.low ? first : v->pages.low;
    v->pages.high = end > v->pages.high ? end : v->pages.high;
}

/* xac_view_note -- the page has been given the access. */
XAC_SIGSAFE void xac_view_note(struct xac_view *view, uint64_t page_no, bool is_write);

/*
 * A transaction that touches very many scattered pages would need more mappings than the
 * kernel gives a process (2^16): beyond so many islands of accessible pages it works in
 * larger units, which grow until the islands are few again (view_unit.c).  The price is
 * false conflicts.  Threads with views of their own (thread.h) share the number.
 */
#define XAC_ISLANDS_MAX   8192
#define XAC_ISLANDS_LEAST 64

/* ---- Many pages by one system call (view_many.c) --------------------------------------- */

/*
 * xac_view_access_run -- xac_view_access for n pages that all lack the access: what is
 * alike is done by one system call.  ret 0 or errno, of the first that cannot be shown.
 */
XAC_SIGSAFE int xac_view_access_run(struct xac_env *env, struct xac_ctx *ctx,
                                    struct xac_view *view, uint64_t first, uint64_t n,
                                    bool is_write);

/*
 * Read-ahead: when pages are touched in order, the next ones are shown together with one,
 * where showing what has not been touched is legal: alone, when reads are not recorded, and in
 * queries, which read one snapshot.  In other transactions they would count as read, and
 * conflict.  So many pages at first and at most; and where a file grows, and all stores are announced,
 * at most so many, for what lies behind the end of the sequence is needed when the file grows on.
 */
#define XAC_AHEAD_FIRST 4
#define XAC_AHEAD_MAX   16
#define XAC_AHEAD_GROWN 64

/*
 * With XAC_OPT_READ_AHEAD_BYTES the kernel reads no page of a file that has not been asked for,
 * and of a sequence the next pages are asked for, which shows nobody anything: so many at first,
 * then twice as many, up to the option, each time half of the last have been touched.
 */
#define XAC_READ_FIRST 16

/*
 * xac_ahead_fill -- an absent page that shows the file continues a sequence: have those behind it
 * read, and fill it and them, if that is worth it and legal.  ret false: nothing has been filled.
 */
XAC_SIGSAFE bool xac_ahead_fill(struct xac_view *view, uint64_t page_no, uint64_t parent,
                                bool is_write);

/* xac_unit_give -- steps 1 to 5 for the pages [first, end) of a view whose engine maps, by
   one protection; ret 0; ENOSPC: no room to register them; errno. */
XAC_SIGSAFE int xac_unit_give(struct xac_env *env, struct xac_ctx *ctx,
                              struct xac_view *view, uint64_t first, uint64_t end,
                              bool is_write);

/* Of zeros, for blank pages; at least one page of any size. */
#define XAC_BLANK_BYTES 262144

/* xac_unit_access -- xac_view_access in units of 1 << ctx->unit_shift pages. */
XAC_SIGSAFE int xac_unit_access(struct xac_env *env, struct xac_ctx *ctx,
                                struct xac_view *view, uint64_t page_no, bool is_write);

/*
 * xac_view_is_untouched -- true if a page that was made writable has certainly not been
 * written: it showed the file, and the kernel has made no private copy of it.
 */
bool xac_view_is_untouched(const struct xac_ctx *ctx, uint64_t page_id);

/* xac_view_is_shown -- has a view of the context given the page memory that is its own? */
XAC_SIGSAFE bool xac_view_is_shown(const struct xac_ctx *ctx, uint64_t page_id);

/* xac_view_written -- the view that has the page dirty, else one that has it spilled, else the
   first one that shows it; NULL: none. */
XAC_SIGSAFE struct xac_view *xac_view_written(const struct xac_ctx *ctx,
                                              uint64_t page_id);

/* xac_view_working_copy -- the running transaction's copy of a page; one that is spilled, in
   XAC_PLACE_WORKING.  NULL with errno. */
XAC_SIGSAFE const uint8_t *xac_view_working_copy(const struct xac_ctx *ctx,
                                                 uint64_t page_id);

/* xac_view_describe -- file, offset and address of a page for xConflict(). */
void xac_view_describe(const struct xac_ctx *ctx, uint64_t page_id,
                       struct xac_conflict *out);

/* xac_view_file_bytes -- contents of a page in its file, with XAC_OPT_FRAMES in that place of
   the context; NULL with errno. */
const uint8_t *xac_view_file_bytes(const struct xac_ctx *ctx, uint64_t page_id,
                                   int place);

/* ---- Warm: pages of a participant that is alone, found by comparing (view_warm.c) ------ */

/*
 * xac_warm_begin -- an outermost transaction or query begins, and nobody has joined since the
 * last: what is warm has not been stored to meanwhile, or the program is stopped; and nothing
 * is warm in a query.  ret 0 or errno.
 */
int xac_warm_begin(struct xac_view *view, bool is_query);

/* xac_warm_check -- stop the program if the page is not what the transaction is shown, for the
   store was in a query, or outside a transaction.  ret 0 or errno. */
int xac_warm_check(const struct xac_view *view, uint64_t page_no, bool in_query);

/* xac_warm_cool -- nothing is warm; all of it has been gathered.  ret 0 or errno. */
int xac_warm_cool(struct xac_view *view);

/* xac_warm_forget -- a page that has lost its access. */
void xac_warm_forget(struct xac_view *view, uint64_t page_no);

/* xac_warm_forget_range -- pages [first, end) that are only readable now. */
void xac_warm_forget_range(struct xac_view *view, uint64_t first, uint64_t end);

/* xac_warm_gather -- warm pages that have been stored to are dirty, and in the set.  ret 0 or errno.
   For all views: xac_view_gather (view_scan.h). */
int xac_warm_gather(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *view);

/* xac_warm_wanted -- a dirty page has been committed: shall it be warm? */
bool xac_warm_wanted(struct xac_view *view, uint64_t page_no);

/*
 * xac_warm_end -- after a transaction: pages that are not written any more are not warm
 * any more; nor are any, and what was stored to them is gone, if it has aborted.
 * ret 0 or errno.
 */
int xac_warm_end(struct xac_view *view, bool is_committed);

/* ---- Aliases: parts of a file that several views of a context show (view_alias.c) ---- */

/*
 * xac_aliases_meet -- find out which views of a context are aliases; after one has come or
 * become longer.  ret 0 or an error.
 */
int xac_aliases_meet(struct xac_ctx *ctx);

/* xac_aliases_leave -- the view is being closed. */
void xac_aliases_leave(struct xac_view *view);

/*
 * xac_aliases_forked -- in a child: the parent's working copies are not its own.  They get
 * memory of their own when they meet again.
 */
void xac_aliases_forked(struct xac_view *view);

/* xac_alias_entry -- the number of the page's set entry + 1 as an alias knows it, or 0. */
XAC_SIGSAFE uint32_t xac_alias_entry(const struct xac_view *view, uint64_t page_no);

/* xac_alias_is_dirty -- is the page dirty (spilled) in an alias, and not here? */
XAC_SIGSAFE bool xac_alias_is_dirty(const struct xac_view *view, uint64_t page_no);

/*
 * xac_alias_is_needed -- must the access go through xac_alias_write? Yes, if there are aliases
 * and it is a store, or an alias has the page dirty.
 */
XAC_SIGSAFE bool xac_alias_is_needed(const struct xac_view *view, uint64_t page_no,
                                     bool is_write);

/*
 * xac_alias_write -- step 5 for such a page: make it dirty, in memory that the aliases share;
 * those that it is readable in lose it.  ret 0 or errno.
 */
XAC_SIGSAFE int xac_alias_write(struct xac_view *view, uint64_t page_no,
                                const struct xac_page *page, uint64_t parent);

/*
 * xac_alias_show -- xac_view_show, of a view that shares its memory (xac_area_shares): what a
 * alias has there is given access here, and is filled only if none has.  ret 0 or errno.
 */
XAC_SIGSAFE int xac_alias_show(struct xac_view *view, uint64_t page_no,
                               const struct xac_page *page, uint64_t parent,
                               bool is_write);

/*
 * xac_alias_is_back -- a page of such a view, readable or dirty, has no access all the same: the
 * kernel has taken it out of the page table, to swap it.  Has it been given back?
 */
XAC_SIGSAFE bool xac_alias_is_back(struct xac_view *view, uint64_t page_no);

/*
 * After the transaction: a page in shared memory is absent (hidden); before that, the
 * whole view if `all`, or if they are very many; and in the end the memory is given back.
 */
int xac_alias_end(struct xac_view *view, uint64_t page_no);
int xac_aliases_end_many(struct xac_view *view, bool all);
void xac_aliases_free_memory(struct xac_view *view);

/* xac_aliases_gather -- have all pages that are dirty in aliases dirty here, too. */
int xac_aliases_gather(struct xac_view *view);

/* xac_view_fd -- the file's descriptor, opened again if the program has closed it; -1 with
   errno. */
XAC_SIGSAFE int xac_view_fd(struct xac_view *view);

/* xac_view_forked -- in a child: nothing is mapped, nothing is known. */
void xac_view_forked(struct xac_view *view);

/*
 * xac_view_rejoin_all -- register the files of a context's views anew after
 * xac_view_forked, the process's first.  ret 0 or an error.
 */
int xac_view_rejoin_all(struct xac_env *env, struct xac_ctx *ctx);

/*
 * xac_view_stored_path -- a file's path as the environment remembers it: relative to the
 * environment directory if the file lies below it, so that the directory can be moved,
 * else absolute.  To be freed; NULL with errno.
 */
char *xac_view_stored_path(const struct xac_env *env, const char *name);

/* xac_view_check_path -- may a segment have this stored path?  ret 0; EINVAL: a newline, or a name that is
   for the library's own files in the environment directory.  in  name  for messages */
int xac_view_check_path(const char *path, const char *name);

#endif /* XAC_VIEW_H */
