/* Draw: what callers call for an id, or iterate over. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    enum kind kind;
    enum form form;
    Cutter *cut;
    PyObject *refill;
} Draw;

static PyObject *draw_refilled(Draw *draw)
{
    PyObject *found = PyObject_CallNoArgs(draw->refill);
    if (!found)
        return NULL;
    PyObject *cut = PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 2 ? PyTuple_GET_ITEM(found, 0)
                                                                        : NULL;
    if (!cut || (cut != Py_None && !is_cutter(cut))) {
        PyErr_SetString(PyExc_TypeError, "a refill must return a Cutter, or None, and an id");
        Py_DECREF(found);
        return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(draw);
    /* One that another thread has put here stays: the end of a Cutter may run Python code. */
    if (!draw->cut && cut != Py_None)
        draw->cut = (Cutter *)Py_NewRef(cut);
    Py_END_CRITICAL_SECTION();
    PyObject *made = Py_NewRef(PyTuple_GET_ITEM(found, 1));
    Py_DECREF(found);
    return made;
}

static PyObject *draw_next(Draw *draw)
{
    Cutter *cut, *former = NULL;
    PyObject *made;

    Py_BEGIN_CRITICAL_SECTION(draw);
    cut = (Cutter *)Py_XNewRef(draw->cut);
    Py_END_CRITICAL_SECTION();
    if (!cut)
        return draw_refilled(draw);
    made = cut_one(cut, draw->kind, draw->form);
    Py_BEGIN_CRITICAL_SECTION(draw);
    if (!made && !PyErr_Occurred() && draw->cut == cut) {
        /* Before the refill, while there is no id: its end may run Python code, which may fork. */
        former = draw->cut;
        draw->cut = NULL;
    } else if (draw->cut != cut)
        /* For the same reason, if this is the last reference. */
        Py_CLEAR(made);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(former);
    Py_DECREF(cut);
    return made || PyErr_Occurred() ? made : draw_refilled(draw);
}

static PyObject *Draw_vectorcall(PyObject *self, PyObject *const *Py_UNUSED(args), size_t count,
                                 PyObject *names)
{
    if (PyVectorcall_NARGS(count) || (names && PyTuple_GET_SIZE(names)))
        return PyErr_Format(PyExc_TypeError, "a function that draws an id takes no arguments");
    return draw_next((Draw *)self);
}

static PyObject *Draw_get_next(Draw *draw, void *Py_UNUSED(closure))
{
    return draw_next(draw);
}

static PyObject *Draw_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"kind", "form", "refill", NULL};
    enum kind kind;
    enum form form;
    PyObject *refill;

    if (!PyArg_ParseTupleAndKeywords(args, names, "O&O&O:Draw", keywords, read_kind, &kind,
                                     read_form, &form, &refill))
        return NULL;
    Draw *draw = (Draw *)type->tp_alloc(type, 0);
    if (draw) {
        draw->vectorcall = Draw_vectorcall;
        draw->kind = kind;
        draw->form = form;
        draw->refill = Py_NewRef(refill);
    }
    return (PyObject *)draw;
}

static PyObject *Draw_reduce(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    return PyErr_Format(PyExc_TypeError, "what Client.factory and Client.iter return cannot be pickled"
                                         " or copied: pickle the client, its methods, or the"
                                         " functions of uuidd_client");
}

static int Draw_traverse(Draw *draw, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(draw));
    Py_VISIT(draw->cut);
    Py_VISIT(draw->refill);
    return 0;
}

static void Draw_dealloc(Draw *draw)
{
    PyTypeObject *type = Py_TYPE(draw);
    PyObject_GC_UnTrack(draw);
    Py_XDECREF(draw->cut);
    Py_XDECREF(draw->refill);
    type->tp_free(draw);
    Py_DECREF(type);
}

static PyMethodDef draw_methods[] = {
    {"__reduce__", Draw_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef draw_attributes[] = {
    {"next", (getter)Draw_get_next, NULL,
     "The next id, each time another, for functions of Python that return it. After a call, Python runs\n"
     "the handlers of signals: one that forks would let the function return the id in both processes.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef draw_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Draw, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot draw_slots[] = {
    {Py_tp_doc, "Return the next id."},
    {Py_tp_new, Draw_new},
    {Py_tp_dealloc, Draw_dealloc},
    {Py_tp_traverse, Draw_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, draw_next},
    {Py_tp_methods, draw_methods},
    {Py_tp_getset, draw_attributes},
    {Py_tp_members, draw_members},
    {0, NULL},
};

PyType_Spec draw_spec = {
    .name = "uuidd_client._core.Draw",
    .basicsize = sizeof(Draw),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
             | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = draw_slots,
};
