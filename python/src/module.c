/* SPDX-License-Identifier: MIT */
/*
 * module.c -- the module xac._xac; see pyxac.h.
 */
#include "pyxac.h"

#include <stddef.h>
#include <string.h>

#include <pthread.h>

/* The counters of the library that stats() tells. */
static const struct {
    const char *name;
    size_t offset;
} counters[] = {
#define COUNTER(name)                     \
 {                                        \
#  name, offsetof(struct xac_stats, name) \
 }
    COUNTER(commits),       COUNTER(commits_read_only),
    COUNTER(queries),       COUNTER(aborts_conflict),
    COUNTER(aborts_user),   COUNTER(aborts_other),
    COUNTER(traps_read),    COUNTER(traps_write),
    COUNTER(hints),         COUNTER(pages_written),
    COUNTER(log_bytes),     COUNTER(log_writes),
    COUNTER(log_syncs),     COUNTER(checkpoints),
    COUNTER(versions_live), COUNTER(participants),
    COUNTER(commit_number), COUNTER(log_tail),
    COUNTER(log_durable),   COUNTER(oldest_pid),
    COUNTER(oldest_age_ns), COUNTER(versions_held),
    COUNTER(engine),
#undef COUNTER
};

PyObject *
env_stats(struct py_env *self, PyObject *none)
{
    struct xac_stats stats;

    (void)none;
    if (!env_is_open(self))
        return NULL;
    memset(&stats, 0, sizeof stats);
    int rc = xac_get_stats_in(self->xac, &stats, sizeof stats);
    PyObject *dict = rc == 0 ? PyDict_New() : xacpy_raise(rc);
    for (size_t i = 0; dict != NULL && i < sizeof counters / sizeof counters[0]; i++) {
        uint64_t count;
        memcpy(&count, (const char *)&stats + counters[i].offset, sizeof count);
        PyObject *number = PyLong_FromUnsignedLongLong(count);
        if (number == NULL || PyDict_SetItemString(dict, counters[i].name, number) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

/* The fields of a participant that are numbers, and those that are words. */
/* clang-format off */
static const struct {
    const char *name;
    size_t offset;
    const char *words[8];
} fields[] = {
#define AT(name)         offsetof(struct xac_party, name)
#define NUMBER(name)     {#name, AT(name), {NULL}}
#define WORDS(name, ...) {#name, AT(name), {__VA_ARGS__}}
    NUMBER(pid),
    NUMBER(tid),
    WORDS(process, "dead", "stopped", "running"),
    NUMBER(is_reader),
    NUMBER(engine),
    WORDS(kind, "idle", "update", "query", "failed", "committing", "cut off", "snapshot"),
    NUMBER(age_ns),
    NUMBER(commit),
    NUMBER(pages_read),
    NUMBER(pages_written),
    NUMBER(versions_held),
    NUMBER(log_held),
    WORDS(waits_for, "nothing", "turn", "transaction"),
    NUMBER(waits_pid),
    NUMBER(waits_ns),
    NUMBER(failed_kind),
    NUMBER(failed_pid),
    NUMBER(failed_ns),
#undef WORDS
#undef NUMBER
#undef AT
};
/* clang-format on */

/* set_item -- dict[name] = value, which is given away; false with an exception. */
static bool
set_item(PyObject *dict, const char *name, PyObject *value)
{
    bool is_set = value != NULL && PyDict_SetItemString(dict, name, value) == 0;

    Py_XDECREF(value);
    return is_set;
}

/* add_party -- for xac_participants_in(): append a dict to the list. */
static int
add_party(void *list, const struct xac_party *party)
{
    PyObject *dict = PyDict_New();
    bool is_whole =
        dict != NULL
        && set_item(dict, "command", PyUnicode_DecodeFSDefault(party->command));

    for (size_t i = 0; is_whole && i < sizeof fields / sizeof fields[0]; i++) {
        uint64_t n;
        memcpy(&n, (const char *)party + fields[i].offset, sizeof n);
        const char *word = n < 8 ? fields[i].words[n] : NULL;
        is_whole = set_item(dict, fields[i].name,
                            word != NULL ? PyUnicode_FromString(word)
                                         : PyLong_FromUnsignedLongLong(n));
    }
    is_whole = is_whole && PyList_Append((PyObject *)list, dict) == 0;
    Py_XDECREF(dict);
    return is_whole ? 0 : -1;
}

PyObject *
env_participants(struct py_env *self, PyObject *none)
{
    PyObject *list;

    (void)none;
    if (!env_is_open(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    int rc = xac_participants_in(self->xac, add_party, list, sizeof(struct xac_party));
    if (rc == 0)
        return list;
    Py_DECREF(list);
    return PyErr_Occurred() != NULL ? NULL : xacpy_raise(rc);
}

/* recover(path) -- see its doc string. */
static PyObject *
recover(PyObject *module, PyObject *arg)
{
    PyObject *path;
    int rc;

    (void)module;
    if (PyUnicode_FSConverter(arg, &path) == 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = xac_recover(PyBytes_AS_STRING(path));
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (rc != 0)
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"recover", recover, METH_O,
     "recover(path)\n--\n\nRecover the environment in a directory after a crash.  Env() does "
     "so by itself."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "xac._xac",
    .m_doc = "The part of the package xac that is written in C.",
    .m_size = -1,
    .m_methods = functions,
};

/* on_fork -- in the child: its objects notice when they are used next. */
static void
on_fork(void)
{
    xacpy_forks++;
}

static const struct {
    const char *name;
    long value;
} constants[] = {
    {"NONDURABLE", XAC_NONDURABLE},
    {"DURABLE", XAC_DURABLE},
    {"READONLY", XAC_READONLY},
    {"ABORTED", XAC_ABORTED},
};

/* add_type -- to the module; its name is the last part of tp_name. */
static int
add_type(PyObject *module, PyTypeObject *type)
{
    if (PyType_Ready(type) != 0)
        return -1;
    Py_INCREF(type);
    if (PyModule_AddObject(module, strrchr(type->tp_name, '.') + 1, (PyObject *)type)
        == 0)
        return 0;
    Py_DECREF(type);
    return -1;
}

PyMODINIT_FUNC
PyInit__xac(void)
{
    PyObject *module = PyModule_Create(&definition);
    bool is_good =
        module != NULL && xacpy_error_init(module) == 0
        && add_type(module, &py_env_type) == 0 && add_type(module, &py_block_type) == 0
        && add_type(module, &py_mapping_type) == 0
        && (xacpy_tree_type() == NULL || add_type(module, xacpy_tree_type()) == 0)
        && PyModule_AddStringConstant(module, "version", xac_version()) == 0;

    for (size_t i = 0; is_good && i < sizeof constants / sizeof constants[0]; i++)
        is_good =
            PyModule_AddIntConstant(module, constants[i].name, constants[i].value) == 0;
    if (is_good && pthread_atfork(NULL, NULL, on_fork) != 0) {
        PyErr_NoMemory();
        is_good = false;
    }
    if (!is_good)
        Py_CLEAR(module);
    return module;
}
