/* SPDX-License-Identifier: MIT */
/*
 * tree.c -- an ordered map of bytes in a mapping, by libxactree; see pyxac.h.
 *
 * Its methods are called inside of a block, so each is a part of that.  xac.Map opens one where
 * there is none.  The module has no Tree if it was built without libxactree.
 */
#include "pyxac.h"

#ifdef HAVE_XACTREE

# include <errno.h>

# include <xactree.h>

struct py_tree {
    PyObject_HEAD struct py_mapping *mapping;
    struct xactree *tree;
};

/* What a scan gathers. */
struct gathered {
    PyObject *list;
    Py_ssize_t most; /* entries                                                       */
};

/* raise -- the exception for a code of libxactree.  ret NULL */
static PyObject *
raise(int code)
{
    if (code == XAC_FAILED) /* the transaction around it */
        return xacpy_raise_conflict();
    const char *text = xactree_last_error();
    return xacpy_raise_text(code, text[0] != '\0' ? text : xac_strerror(code));
}

static bool
is_usable(struct py_tree *self, bool is_change)
{
    struct py_env *env = self->mapping->env;

    if (!env_is_open(env))
        return false;
    if (is_change ? env_may_write(env) : env_has_block(env))
        return true;
    xacpy_raise_text(env_has_block(env) ? XAC_EINQUERY : XAC_ENOTXN,
                     is_change ? "a map is changed in a transaction"
                               : "a map is read in a transaction or query");
    return false;
}

static PyObject *
tree_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"mapping", "create", "key_max", "piece_size", NULL};
    struct py_mapping *mapping;
    struct xactree_config config;
    int may_create;
    unsigned key_max, piece_size;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!pII", names, &py_mapping_type,
                                     &mapping, &may_create, &key_max, &piece_size)
        || !env_is_open(mapping->env))
        return NULL;
    struct py_tree *self = (struct py_tree *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    Py_INCREF(mapping);
    self->mapping = mapping;
    struct xac_env *xac = mapping->env->xac;
    int rc = xactree_open(&self->tree, xac, mapping->base, mapping->length);
    if (rc == ENOENT && may_create) {
        xactree_config_init(&config, sizeof config);
        config.key_max = key_max;
        config.piece_size = piece_size;
        rc = xactree_create(&self->tree, xac, mapping->base, mapping->length, &config);
    }
    if (rc != 0) {
        raise(rc);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void
tree_dealloc(struct py_tree *self)
{
    xactree_close(self->tree);
    Py_XDECREF(self->mapping);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
tree_put(struct py_tree *self, PyObject *args)
{
    Py_buffer key, value;
    int rc = -1;

    if (!PyArg_ParseTuple(args, "y*y*", &key, &value))
        return NULL;
    bool may = is_usable(self, true);
    if (may)
        rc = xactree_put(self->tree, key.buf, (size_t)key.len, value.buf,
                         (size_t)value.len, XACTREE_PUT);
    PyBuffer_Release(&key);
    PyBuffer_Release(&value);
    if (!may)
        return NULL;
    if (rc != 0)
        return raise(rc);
    Py_RETURN_NONE;
}

/* get_value -- the value of a key as bytes; NULL: *rcp, or raised if that is 0. */
static PyObject *
get_value(struct xactree *tree, const void *key, size_t key_len, int *rcp)
{
    char small[256];
    size_t len;

    *rcp = xactree_get(tree, key, key_len, small, sizeof small, &len);
    if (*rcp != 0)
        return NULL;
    if (len <= sizeof small)
        return PyBytes_FromStringAndSize(small, (Py_ssize_t)len);
    PyObject *value = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
    if (value != NULL)
        *rcp = xactree_get(tree, key, key_len, PyBytes_AS_STRING(value), len, &len);
    if (*rcp != 0)
        Py_CLEAR(value);
    return value;
}

static PyObject *
tree_get(struct py_tree *self, PyObject *args)
{
    Py_buffer key;
    PyObject *value = NULL;
    int rc = 0;

    if (!PyArg_ParseTuple(args, "y*", &key))
        return NULL;
    if (is_usable(self, false))
        value = get_value(self->tree, key.buf, (size_t)key.len, &rc);
    PyBuffer_Release(&key);
    if (rc == ENOENT)
        Py_RETURN_NONE;
    return rc != 0 ? raise(rc) : value;
}

static PyObject *
tree_delete(struct py_tree *self, PyObject *args)
{
    Py_buffer key;
    int rc = -1;

    if (!PyArg_ParseTuple(args, "y*", &key))
        return NULL;
    bool may = is_usable(self, true);
    if (may)
        rc = xactree_delete(self->tree, key.buf, (size_t)key.len);
    PyBuffer_Release(&key);
    if (!may)
        return NULL;
    if (rc != 0 && rc != ENOENT)
        return raise(rc);
    return PyBool_FromLong(rc == 0);
}

/* Bounds of a range; a buffer without object is none. */
struct range {
    Py_buffer from, to;
    struct xactree_bytes first, behind;
};

static const struct xactree_bytes *
bound(const Py_buffer *buffer, struct xactree_bytes *bytes)
{
    if (buffer->buf == NULL)
        return NULL;
    bytes->data = buffer->buf;
    bytes->len = (size_t)buffer->len;
    return bytes;
}

static void
range_release(struct range *range)
{
    PyBuffer_Release(&range->from);
    PyBuffer_Release(&range->to);
}

static int
append_entry(PyObject *list, const struct xactree_bytes *key, PyObject *value)
{
    PyObject *pair = value != NULL ? Py_BuildValue("(y#N)", (const char *)key->data,
                                                   (Py_ssize_t)key->len, value)
                                   : NULL;
    int rc = pair != NULL ? PyList_Append(list, pair) : -1;

    Py_XDECREF(pair);
    return rc;
}

/* gather -- xactree_visit.  ret 0; 1: enough; -1: raised. */
static int
gather(void *arg, const struct xactree_bytes *key, const struct xactree_bytes *value)
{
    struct gathered *g = arg;
    PyObject *bytes = PyBytes_FromStringAndSize(value->data, (Py_ssize_t)value->len);

    if (append_entry(g->list, key, bytes) != 0)
        return -1;
    return PyList_GET_SIZE(g->list) < g->most ? 0 : 1;
}

/* gather_back -- the same, from the last entry below `to` on.  ret as gather(), or an error. */
static int
gather_back(struct xactree *tree, const struct xactree_bytes *from,
            const struct xactree_bytes *to, struct gathered *g)
{
    struct xactree_cursor *cursor;
    struct xactree_bytes key;
    int rc = xactree_cursor_open(&cursor, tree);

    if (rc != 0)
        return rc;
    rc = to == NULL ? xactree_cursor_last(cursor)
                    : xactree_cursor_seek(cursor, to->data, to->len);
    if (to != NULL)
        rc = rc == ENOENT ? xactree_cursor_last(cursor)
             : rc == 0    ? xactree_cursor_prev(cursor)
                          : rc;
    while (rc == 0 && (rc = xactree_cursor_key(cursor, &key)) == 0) {
        size_t both = from != NULL && from->len < key.len ? from->len : key.len;
        int order = from != NULL && both > 0 ? memcmp(key.data, from->data, both) : 0;
        if (from != NULL && (order < 0 || (order == 0 && key.len < from->len)))
            break;
        PyObject *value = get_value(tree, key.data, key.len, &rc);
        if (rc == 0)
            rc = append_entry(g->list, &key, value) != 0 ? -1
                 : PyList_GET_SIZE(g->list) < g->most    ? 0
                                                         : 1;
        if (rc == 0)
            rc = xactree_cursor_prev(cursor);
    }
    xactree_cursor_close(cursor);
    return rc == ENOENT ? 0 : rc;
}

static PyObject *
tree_scan(struct py_tree *self, PyObject *args)
{
    struct range range;
    struct gathered g = {NULL, 0};
    int is_back, rc = -1;

    if (!PyArg_ParseTuple(args, "z*z*np", &range.from, &range.to, &g.most, &is_back))
        return NULL;
    const struct xactree_bytes *from = bound(&range.from, &range.first);
    const struct xactree_bytes *to = bound(&range.to, &range.behind);
    if (is_usable(self, false) && (g.list = PyList_New(0)) != NULL)
        rc = is_back ? gather_back(self->tree, from, to, &g)
                     : xactree_scan(self->tree, from, to, gather, &g);
    range_release(&range);
    if (rc == 0 || rc == 1)
        return g.list;
    Py_XDECREF(g.list);
    return PyErr_Occurred() != NULL ? NULL : raise(rc);
}

/* over_range -- a function of libxactree that counts the entries of a range. */
static PyObject *
over_range(struct py_tree *self, PyObject *args, bool is_change,
           int (*fn)(struct xactree *, const struct xactree_bytes *,
                     const struct xactree_bytes *, uint64_t *))
{
    struct range range;
    uint64_t count = 0;
    int rc = -1;

    if (!PyArg_ParseTuple(args, "z*z*", &range.from, &range.to))
        return NULL;
    bool may = is_usable(self, is_change);
    if (may)
        rc = fn(self->tree, bound(&range.from, &range.first),
                bound(&range.to, &range.behind), &count);
    range_release(&range);
    if (!may)
        return NULL;
    return rc != 0 ? raise(rc) : PyLong_FromUnsignedLongLong(count);
}

static PyObject *
tree_count(struct py_tree *self, PyObject *args)
{
    return over_range(self, args, false, xactree_count);
}

static PyObject *
tree_delete_range(struct py_tree *self, PyObject *args)
{
    return over_range(self, args, true, xactree_delete_range);
}

/* entry_at -- xactree_source, from a list of pairs of bytes. */
static int
entry_at(void *arg, uint64_t i, struct xactree_bytes *key, struct xactree_bytes *value)
{
    PyObject *list = arg;

    if (i >= (uint64_t)PyList_GET_SIZE(list))
        return 0;
    PyObject *pair = PyList_GET_ITEM(list, (Py_ssize_t)i);
    key->data = PyBytes_AS_STRING(PyTuple_GET_ITEM(pair, 0));
    key->len = (size_t)PyBytes_GET_SIZE(PyTuple_GET_ITEM(pair, 0));
    value->data = PyBytes_AS_STRING(PyTuple_GET_ITEM(pair, 1));
    value->len = (size_t)PyBytes_GET_SIZE(PyTuple_GET_ITEM(pair, 1));
    return 1;
}

static PyObject *
tree_load(struct py_tree *self, PyObject *args)
{
    PyObject *list;
    unsigned percent;
    uint64_t count;

    if (!PyArg_ParseTuple(args, "O!I", &PyList_Type, &list, &percent)
        || !is_usable(self, true))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *pair = PyList_GET_ITEM(list, i);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2
            || !PyBytes_Check(PyTuple_GET_ITEM(pair, 0))
            || !PyBytes_Check(PyTuple_GET_ITEM(pair, 1))) {
            PyErr_SetString(PyExc_TypeError, "entries are pairs of bytes");
            return NULL;
        }
    }
    int rc = xactree_load(self->tree, entry_at, list, percent, &count);
    return rc != 0 ? raise(rc) : PyLong_FromUnsignedLongLong(count);
}

static PyObject *
tree_check(struct py_tree *self, PyObject *none)
{
    struct xactree_report report;

    (void)none;
    if (!is_usable(self, false))
        return NULL;
    int rc = xactree_check(self->tree, &report, sizeof report);
    if (rc == XAC_EDAMAGED)
        return xacpy_raise_text(rc, report.text);
    if (rc != 0)
        return raise(rc);
    return PyLong_FromUnsignedLongLong(report.entries);
}

static PyMethodDef methods[] = {
    {"put", (PyCFunction)tree_put, METH_VARARGS, "put(key, value)\n--\n\n"},
    {"get", (PyCFunction)tree_get, METH_VARARGS,
     "get(key)\n--\n\nThe value, or None if the key is not there."},
    {"delete", (PyCFunction)tree_delete, METH_VARARGS,
     "delete(key)\n--\n\nReturns whether it was there."},
    {"scan", (PyCFunction)tree_scan, METH_VARARGS,
     "scan(start, stop, most, reverse)\n--\n\nAt most so many entries, as a list."},
    {"count", (PyCFunction)tree_count, METH_VARARGS, "count(start, stop)\n--\n\n"},
    {"delete_range", (PyCFunction)tree_delete_range, METH_VARARGS,
     "delete_range(start, stop)\n--\n\nReturns how many."},
    {"load", (PyCFunction)tree_load, METH_VARARGS,
     "load(entries, percent)\n--\n\nPut a list of pairs behind the last entry."},
    {"check", (PyCFunction)tree_check, METH_NOARGS,
     "check()\n--\n\nVerify the whole tree; returns the number of entries."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject py_tree_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "xac._xac.Tree",
    .tp_doc = "A tree in a mapping; xac.Map is made of it.",
    .tp_basicsize = sizeof(struct py_tree),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = tree_new,
    .tp_dealloc = (destructor)tree_dealloc,
    .tp_methods = methods,
};

PyTypeObject *
xacpy_tree_type(void)
{
    return &py_tree_type;
}

#else

PyTypeObject *
xacpy_tree_type(void)
{
    return NULL;
}

#endif
