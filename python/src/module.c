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
