/* SPDX-License-Identifier: MIT */
/*
 * error.c -- exceptions of the module; see pyxac.h.
 */
#include "pyxac.h"

#include <string.h>

PyObject *py_error, *py_conflict, *py_rolled_back;

/* Names of the library's own codes, for the attribute `name`. */
static const struct {
    int code;
    const char *name;
} codes[] = {
#define CODE(name) \
 {                 \
  name, #name      \
 }
    CODE(XAC_ENOINIT),     CODE(XAC_EALREADY),    CODE(XAC_ENOTXN),
    CODE(XAC_EINTXN),      CODE(XAC_EINQUERY),    CODE(XAC_ENOTMAPPED),
    CODE(XAC_EMAPPED),     CODE(XAC_EFORKED),     CODE(XAC_EVERSION),
    CODE(XAC_EFOREIGN),    CODE(XAC_EDAMAGED),    CODE(XAC_EPAGESIZE),
    CODE(XAC_EPOISONED),   CODE(XAC_EMODE),       CODE(XAC_ELIVE),
    CODE(XAC_EREPLACED),   CODE(XAC_ENOTSHARED),  CODE(XAC_ENOTENV),
    CODE(XAC_EINUSE),      CODE(XAC_ECOPY),       CODE(XAC_ENAMESPACE),
    CODE(XAC_ELOCKLOST),   CODE(XAC_EREADONLY),   CODE(XAC_EUNTRUSTED),
    CODE(XAC_EDESCRIPTOR), CODE(XAC_EFILESYSTEM), CODE(XAC_ENOTDURABLE),
    CODE(XAC_EUNCERTAIN),  CODE(XAC_ENOSTATE),    CODE(XAC_ECUTOFF),
    CODE(XAC_ENOTLEADER),  CODE(XAC_ELOST),
#undef CODE
};

/* The name of a code; for an errno value that of the module errno. */
static PyObject *
name_of(int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return PyUnicode_FromString(codes[i].name);

    PyObject *name = NULL, *number = NULL, *names = NULL;
    PyObject *module = PyImport_ImportModule("errno");
    if (module != NULL && (names = PyObject_GetAttrString(module, "errorcode")) != NULL
        && (number = PyLong_FromLong(code)) != NULL)
        name = PyObject_GetItem(names, number);
    Py_XDECREF(number);
    Py_XDECREF(names);
    Py_XDECREF(module);
    if (name == NULL) {
        PyErr_Clear();
        name = PyUnicode_FromString("");
    }
    return name;
}

/* Set an attribute of an exception to a new reference, which is given up. */
static bool
set_attribute(PyObject *error, const char *name, PyObject *value)
{
    bool is_set = value != NULL && PyObject_SetAttrString(error, name, value) == 0;

    Py_XDECREF(value);
    return is_set;
}

/* Has the transaction committed all the same?  True, False, or None: nobody knows yet. */
static PyObject *
committed_of(int code)
{
    if (code == XAC_ENOTDURABLE)
        Py_RETURN_TRUE;
    if (code == XAC_EUNCERTAIN || code == XAC_EPOISONED)
        Py_RETURN_NONE;
    Py_RETURN_FALSE;
}

/* An exception with its attributes; NULL: raised another one. */
static PyObject *
make_error(PyObject *type, int code, const char *text)
{
    PyObject *error = NULL;
    PyObject *message = PyUnicode_DecodeFSDefault(text);

    if (message == NULL)
        return NULL;
    error = PyObject_CallFunctionObjArgs(type, message, NULL);
    Py_DECREF(message);
    if (error != NULL
        && (!set_attribute(error, "code", PyLong_FromLong(code))
            || !set_attribute(error, "name", name_of(code))
            || !set_attribute(error, "committed", committed_of(code))))
        Py_CLEAR(error);
    return error;
}

static PyObject *
raise_error(PyObject *error)
{
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *
xacpy_raise_text(int code, const char *text)
{
    return raise_error(make_error(py_error, code, text));
}

PyObject *
xacpy_raise(int code)
{
    const char *text = xac_last_error();

    return xacpy_raise_text(code, text[0] != '\0' ? text : xac_strerror(code));
}

static const char *
kind_text(int kind)
{
    switch (kind) {
    case XAC_CONFLICT_READ_WRITE:
        return "another one wrote what this one had read";
    case XAC_CONFLICT_WRITE_READ:
        return "another one read what this one had written";
    case XAC_CONFLICT_WRITE_WRITE:
        return "another one wrote what this one had written";
    case XAC_CONFLICT_REVOKED:
        return "a process or thread joined while it ran, or it was stopped for long";
    case XAC_CONFLICT_VALIDATION:
        return "another one committed a change of what this one had used";
    default:
        return "it could not commit";
    }
}

PyObject *
xacpy_raise_conflict(void)
{
    struct xac_conflict why;
    char text[512];

    memset(&why, 0, sizeof why);
    if (xac_get_conflict(&why, sizeof why) != 0)
        why.kind = XAC_CONFLICT_NONE;
    if (why.file[0] != '\0')
        snprintf(text, sizeof text,
                 "the transaction was rolled back: %s; %s, offset %llu, process %d",
                 kind_text(why.kind), why.file, (unsigned long long)why.file_offset,
                 why.other_pid);
    else
        snprintf(text, sizeof text, "the transaction was rolled back: %s",
                 kind_text(why.kind));

    PyObject *error = make_error(py_conflict, XAC_ABORTED, text);
    if (error != NULL
        && (!set_attribute(error, "file", PyUnicode_DecodeFSDefault(why.file))
            || !set_attribute(error, "offset",
                              PyLong_FromUnsignedLongLong(why.file_offset))
            || !set_attribute(error, "other_pid", PyLong_FromLong(why.other_pid))
            || !set_attribute(error, "kind", PyLong_FromLong(why.kind))))
        Py_CLEAR(error);
    return raise_error(error);
}

static PyObject *
new_exception(PyObject *module, const char *name, const char *doc, PyObject *base)
{
    char full[32];
    PyObject *dict = base != NULL ? PyDict_New()
                                  : Py_BuildValue("{s:i,s:s,s:O}", "code", 0, "name", "",
                                                  "committed", Py_False);

    snprintf(full, sizeof full, "xac.%s", name);
    PyObject *type =
        dict != NULL ? PyErr_NewExceptionWithDoc(full, doc, base, dict) : NULL;
    Py_XDECREF(dict);
    if (type == NULL)
        return NULL;
    Py_INCREF(type); /* one for the module, one for our variable */
    if (PyModule_AddObject(module, name, type) != 0) {
        Py_DECREF(type);
        Py_CLEAR(type);
    }
    return type;
}

int
xacpy_error_init(PyObject *module)
{
    py_error = new_exception(
        module, "Error",
        "A call of the library failed.\n\n"
        "code: an errno value, or a negative code of the library; name: its name, such as\n"
        "'ENOSPC' or 'XAC_EDAMAGED'; committed: whether the transaction has taken effect\n"
        "all the same (None: recovery will decide).",
        NULL);
    if (py_error == NULL)
        return -1;
    py_conflict = new_exception(
        module, "Conflict",
        "The transaction was rolled back, because another one was in its way.  Another\n"
        "attempt may succeed: Env.atomic() makes it.\n\n"
        "file, offset: a page that both wanted; other_pid: the other process; kind: the\n"
        "number of enum xac_conflict_kind.  They are empty or 0 if unknown.",
        py_error);
    py_rolled_back = new_exception(
        module, "RolledBack",
        "The transaction was rolled back, because an exception had left a block inside\n"
        "of it.  The outer block has caught it and ended as if nothing had happened.",
        py_error);
    return py_conflict != NULL && py_rolled_back != NULL ? 0 : -1;
}
