/* SPDX-License-Identifier: MIT */
/*
 * mapping.c -- a file mapped in an environment, as an object with a buffer; see pyxac.h.
 *
 * It keeps its environment alive, and what uses its memory keeps it alive.  Its memory may be
 * touched inside of blocks only.
 */
#include "pyxac.h"

#include <errno.h>
#include <stddef.h>
#include <structmember.h>

/* enlist, delist -- in the environment's list. */
static void
enlist(struct py_mapping *self)
{
    self->link = &self->env->mappings;
    self->next = *self->link;
    if (self->next != NULL)
        self->next->link = &self->next;
    *self->link = self;
}

static void
delist(struct py_mapping *self)
{
    *self->link = self->next;
    if (self->next != NULL)
        self->next->link = self->link;
}

void
mappings_closed(struct py_env *env)
{
    for (struct py_mapping *m = env->mappings; m != NULL; m = m->next)
        m->closed = closed_add(m->base, m->length, PyBytes_AS_STRING(m->name));
}

static PyObject *
mapping_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"env", "name", "length", NULL};
    struct py_env *env;
    PyObject *name;
    Py_ssize_t length;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&n", names, &py_env_type, &env,
                                     PyUnicode_FSConverter, &name, &length))
        return NULL;
    struct py_mapping *self = NULL;
    if (length < 0)
        PyErr_SetString(PyExc_ValueError, "length is negative");
    else if (env_is_open(env) && idle_end(env) == 0)
        self = (struct py_mapping *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_DECREF(name);
        return NULL;
    }
    Py_INCREF(env);
    self->env = env;
    self->name = name;
    closed_lift();
    void *base = xac_mmap_at_in(env->xac, PyBytes_AS_STRING(name), 0, (size_t)length, 0);
    int rc = base == MAP_FAILED ? errno : 0;
    closed_reserve();
    (void)idle_begin(env);
    if (rc != 0) {
        xacpy_raise(rc);
        Py_DECREF(self);
        return NULL;
    }
    self->base = base;
    self->length = (size_t)length;
    enlist(self);
    return (PyObject *)self;
}

static void
mapping_dealloc(struct py_mapping *self)
{
    if (self->weak_references != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    if (self->base != NULL) {
        delist(self);
        env_unmap(self->env, self->base);
    }
    if (self->closed != NULL)
        closed_remove(self->closed);
    Py_XDECREF(self->name);
    Py_XDECREF(self->env);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* A buffer for writing is handed out in transactions only. */
static int
mapping_get_buffer(struct py_mapping *self, Py_buffer *view, int flags)
{
    bool may_write = false;

    if (self->env->xac != NULL)
        may_write = env_may_write(self->env);
    if (self->env->xac == NULL) {
        PyErr_SetString(PyExc_BufferError, "the environment is closed");
        return -1;
    }
    if ((flags & PyBUF_WRITABLE) != 0 && !may_write) {
        PyErr_SetString(PyExc_BufferError,
                        "a mapping can be written in a transaction only");
        return -1;
    }
    return PyBuffer_FillInfo(view, (PyObject *)self, self->base, (Py_ssize_t)self->length,
                             !may_write, flags);
}

static PyObject *
mapping_grow(struct py_mapping *self, PyObject *arg)
{
    size_t length = PyLong_AsSize_t(arg);

    if (PyErr_Occurred() != NULL || !env_is_open(self->env))
        return NULL;
    if (length < self->length) {
        PyErr_SetString(PyExc_ValueError, "a mapping does not become shorter");
        return NULL;
    }
    if (idle_end(self->env) != 0)
        return NULL;
    closed_lift();
    void *base = xac_mremap_in(self->env->xac, self->base, length, 0);
    int rc = base == MAP_FAILED ? errno : 0;
    closed_reserve();
    (void)idle_begin(self->env);
    if (rc == EADDRINUSE)
        Py_RETURN_FALSE;
    if (rc != 0)
        return xacpy_raise(rc);
    self->length = length;
    Py_RETURN_TRUE;
}

/* Announce accesses to [address, address + length), all of it in the mapping. */
static PyObject *
mapping_announce(struct py_mapping *self, PyObject *args)
{
    unsigned long long address;
    Py_ssize_t length;
    int is_store;

    if (!PyArg_ParseTuple(args, "Knp", &address, &length, &is_store)
        || !env_is_open(self->env))
        return NULL;
    uintptr_t base = (uintptr_t)self->base;
    if (length < 0 || address < base || address - base > self->length
        || (size_t)length > self->length - (address - base)) {
        PyErr_SetString(PyExc_ValueError, "not inside of the mapping");
        return NULL;
    }
    if (!env_has_block(self->env) && !self->env->is_idle)
        return xacpy_raise_text(XAC_ENOTXN,
                                "announce() is for a transaction or query that is open");
    int rc = length == 0
                 ? 0
                 : xac_set_range_access_in(self->env->xac, (void *)(uintptr_t)address,
                                           (size_t)length,
                                           is_store ? XAC_READ_WRITE : XAC_READ);
    if (rc != 0)
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

/* A new array over this mapping, or a view of one that is. */
static PyObject *
mapping_adopt(struct py_mapping *self, PyObject *args)
{
    PyObject *array, *origin;

    if (!PyArg_ParseTuple(args, "OO", &array, &origin))
        return NULL;
    if (self->env->xac == NULL)
        Py_RETURN_NONE;
    bool is_concerned = origin == Py_None || arrays_has(self->env, origin);
    if (is_concerned && env_may_write(self->env)) {
        int is_writable = arrays_is_writable(array);
        if (is_writable < 0)
            return NULL;
        is_concerned = is_writable == 1;
    }
    if (is_concerned && arrays_add(self->env, array) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
mapping_address(struct py_mapping *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(self->base);
}

static PyObject *
mapping_name(struct py_mapping *self, void *closure)
{
    (void)closure;
    return PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(self->name));
}

static PyObject *
mapping_length(struct py_mapping *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(self->length);
}

static PyMethodDef methods[] = {
    {"grow", (PyCFunction)mapping_grow, METH_O,
     "grow(length)\n--\n\nMake the mapping longer, and the file if it is shorter.\n\n"
     "Returns False if the addresses behind it are taken; nothing has changed then."},
    {"announce", (PyCFunction)mapping_announce, METH_VARARGS,
     "announce(address, length, write)\n--\n\nAnnounce accesses to a range, which may be "
     "given\nto system calls until the block ends."},
    {"_adopt", (PyCFunction)mapping_adopt, METH_VARARGS,
     "_adopt(array, origin)\n--\n\nLet the array be written in transactions only, if "
     "`origin` is\nNone or such an array."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"address", (getter)mapping_address, NULL, "Where it begins in memory.", NULL},
    {"name", (getter)mapping_name, NULL, "The name of the file.", NULL},
    {"length", (getter)mapping_length, NULL, "Bytes that are mapped.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"env", T_OBJECT_EX, offsetof(struct py_mapping, env), READONLY, "The environment."},
    {NULL, 0, 0, 0, NULL},
};

static PyBufferProcs buffer = {.bf_getbuffer = (getbufferproc)mapping_get_buffer};

PyTypeObject py_mapping_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "xac._xac.Mapping",
    .tp_doc =
        "Mapping(env, name, length)\n--\n\n"
        "The first `length` bytes of a file, mapped in an environment.\n\n"
        "It has a buffer: memoryview(mapping), numpy.frombuffer(mapping).  Its bytes "
        "may be\ntouched inside of transactions and queries only; any other access "
        "ends the process.",
    .tp_basicsize = sizeof(struct py_mapping),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = mapping_new,
    .tp_dealloc = (destructor)mapping_dealloc,
    .tp_weaklistoffset = offsetof(struct py_mapping, weak_references),
    .tp_as_buffer = &buffer,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_members = members,
};
