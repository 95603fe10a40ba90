/* Draw and Ids: what callers call, and iterate over. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    enum form form;
    Cutter *cut;
    PyObject *refill, *kept;
    PyTypeObject *cutter;
    /* Of the function that leads here, see shortcut(). */
    PyObject *code;
} Draw;

static PyObject *draw_refilled(Draw *draw)
{
    /* Not after the refill: the end of a cutter may run Python code, which may fork. */
    if (drop_former(draw->kept) < 0)
        return NULL;
    PyObject *found = PyObject_CallNoArgs(draw->refill);
    if (!found)
        return NULL;
    PyObject *cut = PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 2 ? PyTuple_GET_ITEM(found, 0)
                                                                        : NULL;
    if (!cut || (cut != Py_None && !Py_IS_TYPE(cut, draw->cutter))) {
        PyErr_SetString(PyExc_TypeError, "a refill must return a Cutter, or None, and an id");
        Py_DECREF(found);
        return NULL;
    }
    if (cut != Py_None && cut != (PyObject *)load(&draw->cut)) {
        if (PyList_Append(draw->kept, cut) < 0) {
            Py_DECREF(found);
            return NULL;
        }
        store_release(&draw->cut, (Cutter *)cut);
    }
    PyObject *made = Py_NewRef(PyTuple_GET_ITEM(found, 1));
    Py_DECREF(found);
    return made;
}

static PyObject *draw_next(Draw *draw)
{
    Cutter *cut = load_acquire(&draw->cut);
    if (cut) {
        Py_INCREF(cut);
        PyObject *made = cut_one(cut, draw->form);
        /* If this was the last reference, Python code runs, which may fork. */
        if (made && load(&draw->cut) != cut)
            Py_CLEAR(made);
        Py_DECREF(cut);
        if (made || PyErr_Occurred())
            return made;
    }
    return draw_refilled(draw);
}

static PyObject *Draw_vectorcall(PyObject *self, PyObject *const *Py_UNUSED(args), size_t count,
                                 PyObject *names)
{
    if (PyVectorcall_NARGS(count) || (names && PyTuple_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "a function that draws an id takes no arguments");
        return NULL;
    }
    return draw_next((Draw *)self);
}

static PyObject *Draw_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"form", "refill", NULL};
    const char *name;
    PyObject *refill;

    if (!PyArg_ParseTupleAndKeywords(args, names, "sO", keywords, &name, &refill))
        return NULL;
    int form = form_of(name);
    if (form < 0)
        return NULL;
    Draw *draw = (Draw *)type->tp_alloc(type, 0);
    if (!draw)
        return NULL;
    draw->vectorcall = Draw_vectorcall;
    draw->form = (enum form)form;
    draw->refill = Py_NewRef(refill);
    draw->cutter = (PyTypeObject *)Py_NewRef(state_of(type)->cutter);
    if (!(draw->kept = PyList_New(0)))
        Py_CLEAR(draw);
    return (PyObject *)draw;
}

static int Draw_traverse(Draw *draw, visitproc visit, void *arg);

#if PY_VERSION_HEX >= 0x030C0000
/* What CPython does for a call of a function that is written in Python. */
static vectorcallfunc plain_call;

/* Does what the body of the function would do, if it is still that of shortcut(): call the Draw in
 * its closure. */
static PyObject *function_call(PyObject *callable, PyObject *const *args, size_t count,
                               PyObject *names)
{
    PyFunctionObject *function = (PyFunctionObject *)callable;
    /* Another one may be put there, by another thread or by what a refill calls. */
    PyObject *draw = PyCell_Get(PyTuple_GET_ITEM(function->func_closure, 0)), *made;
    if (PyVectorcall_NARGS(count) || names || !draw
        || Py_TYPE(draw)->tp_traverse != (traverseproc)Draw_traverse
        || ((Draw *)draw)->code != function->func_code)
        made = load(&plain_call)(callable, args, count, names);
    else
        made = draw_next((Draw *)draw);
    Py_XDECREF(draw);
    return made;
}
#endif

PyObject *shortcut(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *callable, *closure;
    Draw *draw;
    if (!PyArg_ParseTuple(args, "O!O:shortcut", &PyFunction_Type, &callable, &draw))
        return NULL;
    closure = PyFunction_GET_CLOSURE(callable);
    if (!closure || PyCell_GET(PyTuple_GET_ITEM(closure, 0)) != (PyObject *)draw
        || Py_TYPE(draw)->tp_traverse != (traverseproc)Draw_traverse) {
        PyErr_SetString(PyExc_TypeError, "the function must have the Draw in its closure");
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030C0000
    PyFunctionObject *function = (PyFunctionObject *)callable;
    Py_XSETREF(draw->code, Py_NewRef(function->func_code));
    if (function->vectorcall != function_call) {
        store(&plain_call, function->vectorcall);
        PyFunction_SetVectorcall(function, function_call);
    }
#endif
    Py_RETURN_NONE;
}

static PyObject *Draw_reduce(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    PyErr_SetString(PyExc_TypeError, "what Client.factory and Client.iter return cannot be pickled or"
                                     " copied: pickle the client, its methods, or the functions of"
                                     " uuidd_client");
    return NULL;
}

static PyObject *Draw_signature(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    PyObject *module = PyImport_ImportModule("inspect");
    PyObject *made = module ? PyObject_CallMethod(module, "Signature", NULL) : NULL;
    Py_XDECREF(module);
    return made;
}

static int Draw_traverse(Draw *draw, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(draw));
    Py_VISIT(draw->refill);
    Py_VISIT(draw->kept);
    Py_VISIT(draw->cutter);
    Py_VISIT(draw->code);
    return 0;
}

static void Draw_dealloc(Draw *draw)
{
    PyTypeObject *type = Py_TYPE(draw);
    PyObject_GC_UnTrack(draw);
    Py_CLEAR(draw->refill);
    Py_CLEAR(draw->kept);
    Py_CLEAR(draw->cutter);
    Py_CLEAR(draw->code);
    type->tp_free(draw);
    Py_DECREF(type);
}

static PyMethodDef draw_methods[] = {
    {"__reduce__", Draw_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *Draw_get_next(Draw *draw, void *Py_UNUSED(closure))
{
    return draw_next(draw);
}

static PyGetSetDef draw_attributes[] = {
    {"next", (getter)Draw_get_next, NULL,
     "The next id, each time another, for functions of Python that return it. After a call, Python runs\n"
     "the handlers of signals: one that forks would let the function return the id in both processes.",
     NULL},
    {"__signature__", Draw_signature, NULL, NULL, NULL},
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

/* Not the same type, because frameworks take what can be iterated over for a collection. */
static PyType_Slot ids_slots[] = {
    {Py_tp_doc, "An endless iterator over ids."},
    {Py_tp_new, Draw_new},
    {Py_tp_dealloc, Draw_dealloc},
    {Py_tp_traverse, Draw_traverse},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, draw_next},
    {Py_tp_methods, draw_methods},
    {0, NULL},
};

PyType_Spec ids_spec = {
    .name = "uuidd_client._core.Ids",
    .basicsize = sizeof(Draw),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = ids_slots,
};
