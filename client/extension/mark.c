/* Mark: the end of the ticks that are used, which several threads raise without a lock. */

#include "core.h"

static PyObject *Mark_raise_to(Mark *self, PyObject *arg)
{
    long long end = PyLong_AsLongLong(arg);
    if (end == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromLongLong(mark_raise(self, end));
}

static PyObject *Mark_get_end(Mark *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(load(&self->end));
}

static int Mark_set_end(Mark *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "end cannot be deleted");
        return -1;
    }
    long long end = PyLong_AsLongLong(value);
    if (end == -1 && PyErr_Occurred())
        return -1;
    store(&self->end, end);
    return 0;
}

static void simple_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef mark_methods[] = {
    {"raise_to", (PyCFunction)Mark_raise_to, METH_O,
     "raise_to($self, end, /)\n--\n\nRaise it to *end*, unless it is there already; return what it was."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef mark_attributes[] = {
    {"end", (getter)Mark_get_end, (setter)Mark_set_end, "A tick before which all are used.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot mark_slots[] = {
    {Py_tp_doc, "Mark()\n--\n\nThe *end* of the ticks that are used: all before it are, 0 at first."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, simple_dealloc},
    {Py_tp_methods, mark_methods},
    {Py_tp_getset, mark_attributes},
    {0, NULL},
};

PyType_Spec mark_spec = {
    .name = "uuidd_client._core.Mark",
    .basicsize = sizeof(Mark),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = mark_slots,
};
