/* SPDX-License-Identifier: MIT */
/*
 * pyxac.h -- what the files of the extension module xac._xac share.
 *
 * WHAT      The objects of the module: environments, blocks (transactions and queries), mappings.
 *           Arrays, maps and decorators are made of them in Python (python/lib/xac).
 * THREADS   The fields of all objects are read and changed with the interpreter's lock held.  Waits
 *           and calls that may sync let it go.  One thread at a time has a block open in an
 *           environment: it holds env->turn.
 * SIGNALS   A block begins and ends in C.  So a signal handler of Python, which may raise
 *           KeyboardInterrupt, runs before or after it, never in the middle.
 *
 * INVARIANTS
 *   (1) env->depth is the number of blocks that are open, each of which has its own level, 1 to
 *       depth; the thread env->owner holds env->turn while depth is not 0.
 *   (2) While is_idle, the library has one query open that no block belongs to, and depth is 0.
 *   (3) The arrays in env->arrays can be written if and only if env_may_write().
 *   (4) A mapping that has addresses (base is not NULL) is in env->mappings.  While the environment is
 *       open, the library maps a file there; after that they are reserved (closed.c), unless
 *       something else has got them first.
 */
#ifndef PYXAC_H
#define PYXAC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include <xac_env.h>

enum block_kind {
    BLOCK_TRANSACTION,
    BLOCK_QUERY
};

/* A mapping without an object, which could not be unmapped yet. */
struct pending {
    void *base;
    struct pending *next;
};

struct py_mapping;

struct py_env {
    PyObject_HEAD struct xac_env *xac; /* NULL: closed                                */
    PyObject *path;                    /* str, absolute                               */
    PyObject *arrays;        /* dict: address of an array -> weak reference to it      */
    PyThread_type_lock turn; /* held by the thread that has a block open             */
    unsigned long owner;     /* that thread                                            */
    unsigned depth;          /* blocks that are open                                   */
    unsigned n_queries;      /* of these, queries                                      */
    bool is_outer_query;     /* the outermost block is a query                         */
    bool is_abort_wanted;    /* abort() was called in the outermost transaction        */
    bool is_broken;          /* an exception has left a nested block                   */
    bool keeps_query;        /* outside="query"                                        */
    bool are_writable;       /* the arrays                                             */
    bool is_idle;            /* the query of `keeps_query` is open                     */
    unsigned long home;      /* the thread that opened it and has that query           */
    unsigned forks;          /* number of forks (xacpy_forks) that it knows of          */
    struct pending *pending;
    struct py_mapping *mappings; /* all objects that map a file of it                 */
};

/* Which state a query sees. */
enum query_from {
    QUERY_NEWEST,
    QUERY_AT,
    QUERY_AFTER,
    QUERY_LATEST
};

struct py_block {
    PyObject_HEAD struct py_env *env;
    enum block_kind kind;
    enum query_from from;   /* of a query                                         */
    uint64_t at;            /* QUERY_AT: a snapshot                               */
    struct xac_token token; /* QUERY_AFTER                                        */
    uint32_t wait_ms;       /* QUERY_AFTER, QUERY_LATEST                          */
    unsigned level;    /* 0: not open                                                */
    unsigned forks;    /* number of forks when it was opened                         */
    PyObject *outcome; /* NULL while open; True: it has committed                    */
};

struct py_mapping {
    PyObject_HEAD struct py_env *env;
    PyObject *weak_references;
    PyObject *name;
    void *base;
    size_t length; /* bytes                                                           */
    struct closed_place
        *closed; /* its addresses after env.close()                      */
    struct py_mapping *next,
        **link; /* of env->mappings                                 */
};

extern PyTypeObject py_env_type, py_block_type, py_mapping_type;

/* xac.Error and its subclasses. */
extern PyObject *py_error, *py_conflict, *py_rolled_back;

/* Forks that this process comes from, counted since the module was loaded. */
extern unsigned xacpy_forks;

/* ---- error.c ------------------------------------------------------------------------ */

int xacpy_error_init(PyObject *module);

/* Raise xac.Error for a code of the library.  ret NULL, for the caller to return. */
PyObject *xacpy_raise(int code);

/* Raise xac.Error with a text of ours. */
PyObject *xacpy_raise_text(int code, const char *text);

/* Raise xac.Conflict, which tells who was in the way of the transaction that has just ended. */
PyObject *xacpy_raise_conflict(void);

/* ---- env.c -------------------------------------------------------------------------- */

/* Is the environment open?  Raises xac.Error if not.  It also notices a fork. */
bool env_is_open(struct py_env *self);

/* Has the calling thread a block open, and may it store? */
bool env_has_block(const struct py_env *self);
bool env_may_write(const struct py_env *self);

/* Call a function of the library that takes the environment only, outside of the interpreter's lock. */
int env_call(struct py_env *self, int (*fn)(struct xac_env *));

/* Unmap now, or as soon as no block is open. */
void env_unmap(struct py_env *self, void *base);

/* Unmap what has been waiting for that; no block may be open. */
void env_unmap_pending(struct py_env *self);

PyObject *env_stats(struct py_env *self, PyObject *none);
PyObject *env_participants(struct py_env *self, PyObject *none);

/* ---- tree.c ------------------------------------------------------------------------- */

/* The type Tree; NULL: built without libxactree. */
PyTypeObject *xacpy_tree_type(void);

/* ---- turn.c ------------------------------------------------------------------------- */

/* Wait until no other thread has a block open.  ret false: raised, by a signal for instance. */
bool turn_take(struct py_env *self);
void turn_give(struct py_env *self);

/* Begin and end the query that is open while no block is, if outside="query". */
int idle_begin(struct py_env *self);
int idle_end(struct py_env *self);

/* After a fork the child has no block open.  Called by env_is_open(). */
bool turn_after_fork(struct py_env *self);

/* ---- mapping.c ----------------------------------------------------------------------- */

/* The environment has been closed: keep the addresses of its mappings from others. */
void mappings_closed(struct py_env *env);

/* ---- closed.c ------------------------------------------------------------------------ */

/* Install the handler that explains an access after env.close().  Before the library's own. */
void closed_init(void);

/* Reserve addresses that a file has just been unmapped from; until closed_remove().  ret NULL: no
   memory, then they are not reserved. */
struct closed_place *closed_add(void *base, size_t length, const char *name);
void closed_remove(struct closed_place *place);

/* Let all addresses go, for the library to map files at; reserve those that are free again. */
void closed_lift(void);
void closed_reserve(void);

/* ---- arrays.c ----------------------------------------------------------------------- */

/* Let the arrays of the environment be written, or not.  It raises nothing. */
void arrays_set_writable(struct py_env *self, bool is_writable);

/* From now on arrays_set_writable() concerns this array, too.  ret 0; -1 raised. */
int arrays_add(struct py_env *self, PyObject *array);

/* Its flag "writeable".  ret 1 or 0; -1 raised. */
int arrays_is_writable(PyObject *array);

bool arrays_has(struct py_env *self, PyObject *array);

#endif /* PYXAC_H */
