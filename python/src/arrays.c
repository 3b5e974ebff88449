/* SPDX-License-Identifier: MIT */
/*
 * arrays.c -- the arrays of an environment, writable in transactions only; see pyxac.h.
 *
 * An array that outlives its transaction would let the program store outside of one, which ends
 * the process.  So the flag "writeable" of NumPy is cleared meanwhile, and a store raises ValueError.
 *
 * Only functions of C are called here, so no handler of a signal raises an exception in the middle.
 */
#include "pyxac.h"

/* The object of a weak reference, a new reference; NULL: it is gone. */
static PyObject *
object_of(PyObject *reference)
{
#if PY_VERSION_HEX >= 0x030d0000
    PyObject *object = NULL;

    if (PyWeakref_GetRef(reference, &object) < 0)
        PyErr_Clear();
    return object;
#else
    PyObject *object = PyWeakref_GetObject(reference);

    if (object == Py_None)
        return NULL;
    Py_INCREF(object);
    return object;
#endif
}

int
arrays_is_writable(PyObject *array)
{
    PyObject *flags = PyObject_GetAttrString(array, "flags");
    PyObject *flag = flags != NULL ? PyObject_GetAttrString(flags, "writeable") : NULL;
    int is_writable = flag != NULL ? PyObject_IsTrue(flag) : -1;

    Py_XDECREF(flag);
    Py_XDECREF(flags);
    return is_writable;
}

/* ret false: the array is gone; the program has made it read-only itself; or NumPy refuses. */
static bool
set_one(PyObject *reference, bool is_writable)
{
    PyObject *array = object_of(reference);
    PyObject *done = NULL;

    if (array == NULL)
        return false;
    if (is_writable || arrays_is_writable(array) == 1)
        done =
            PyObject_CallMethod(array, "setflags", "O", is_writable ? Py_True : Py_False);
    Py_DECREF(array);
    if (done == NULL) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(done);
    return true;
}

void
arrays_set_writable(struct py_env *self, bool is_writable)
{
    PyObject *key, *reference, *type, *value, *traceback;
    PyObject *gone = NULL;
    Py_ssize_t at = 0;

    if (self->are_writable == is_writable)
        return;
    self->are_writable = is_writable;
    /* An exception may be on its way through the block that ends. */
    PyErr_Fetch(&type, &value, &traceback);
    while (PyDict_Next(self->arrays, &at, &key, &reference))
        if (!set_one(reference, is_writable)
            && (gone != NULL || (gone = PyList_New(0)) != NULL))
            PyList_Append(gone, key);
    for (Py_ssize_t i = 0; gone != NULL && i < PyList_GET_SIZE(gone); i++)
        PyDict_DelItem(self->arrays, PyList_GET_ITEM(gone, i));
    Py_XDECREF(gone);
    PyErr_Restore(type, value, traceback);
}

int
arrays_add(struct py_env *self, PyObject *array)
{
    PyObject *key = PyLong_FromVoidPtr(array);
    PyObject *reference = key != NULL ? PyWeakref_NewRef(array, NULL) : NULL;
    int rc = -1;

    /* An entry of an array that was at this address before is replaced. */
    if (reference != NULL)
        rc = PyDict_SetItem(self->arrays, key, reference);
    Py_XDECREF(reference);
    Py_XDECREF(key);
    return rc;
}

bool
arrays_has(struct py_env *self, PyObject *array)
{
    PyObject *key = PyLong_FromVoidPtr(array);
    PyObject *reference = key != NULL ? PyDict_GetItem(self->arrays, key) : NULL;
    PyObject *found = reference != NULL ? object_of(reference) : NULL;

    Py_XDECREF(key);
    Py_XDECREF(found);
    return found == array;
}
