/* Cutter, as Python uses it: what it is made of. */

#include "core.h"

static PyObject *Cutter_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"kind",  "memory", "used",  "latest",   "max_age",
                               "clock", "random", "uuids", NULL};
    const char *kind_name;
    PyObject *memory, *used, *latest, *clock, *random, *uuid, *safe, *unknown;
    double max_age;
    State *state = state_of(type);

    if (!PyArg_ParseTupleAndKeywords(args, names, "sOO!OdOO(O!OO):Cutter", keywords, &kind_name,
                                     &memory, state->mark, &used, &latest, &max_age, &clock,
                                     &random, &PyType_Type, &uuid, &safe, &unknown))
        return NULL;
    int kind = kind_of(kind_name);
    if (kind < 0)
        return NULL;
    if (latest != Py_None && !Py_IS_TYPE(latest, state->mark)) {
        PyErr_SetString(PyExc_TypeError, "latest must be a Mark or None");
        return NULL;
    }
    Cutter *cut = (Cutter *)type->tp_alloc(type, 0);
    if (!cut)
        return NULL;
    cut->kind = (enum kind)kind;
    cut->used = (Mark *)Py_NewRef(used);
    cut->latest = latest == Py_None ? NULL : (Mark *)Py_NewRef(latest);
    cut->clock = clock == Py_None ? NULL : Py_NewRef(clock);
    cut->random = Py_NewRef(random);
    cut->random_size = random_size(cut->kind, -1);
    cut->random_spare = cut->random_size - random_size(cut->kind, 0);
    cut->system_random = random == state->urandom;
    cut->epochs = state->epochs;
    cut->uuids.names = Py_NewRef(state->uuid_fields);
    cut->uuids.type = (PyTypeObject *)Py_NewRef(uuid);
    cut->uuids.safe = Py_NewRef(safe);
    cut->uuids.unknown = Py_NewRef(unknown);
    find_slots(&cut->uuids);
    if (!(cut->held = PyList_New(0)) || !(cut->lent = PyList_New(0))
        || !(cut->memory = PyMemoryView_FromObject(memory)))
        goto failed;
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(cut->memory);
    if (buffer->readonly || buffer->len < 2 * MOST_RANDOM_KEPT || !PyBuffer_IsContiguous(buffer, 'C')
        || (uintptr_t)buffer->buf % 8) {
        PyErr_SetString(PyExc_ValueError, "the memory must be a page that can be written to");
        goto failed;
    }
    cut->alive = buffer->buf;
    cut->pool.bytes = (uint8_t *)buffer->buf + buffer->len / 2;
    cut->lag = max_age < LONGEST_LAG / 1e7 ? (int64_t)(max_age * 1e7) : LONGEST_LAG;
    cut->pool.age = max_age < LONGEST_KEPT / 1e9 ? (int64_t)(max_age * 1e9) : LONGEST_KEPT;
    return (PyObject *)cut;
failed:
    Py_DECREF(cut);
    return NULL;
}

static PyObject *Cutter_one(Cutter *cut, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    int form = name ? form_of(name) : -1;
    if (form < 0)
        return NULL;
    PyObject *made = cut_one(cut, (enum form)form);
    if (made || PyErr_Occurred())
        return made;
    Py_RETURN_NONE;
}

static PyObject *Cutter_get_floor(Cutter *cut, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(load(&cut->floor));
}

static int Cutter_set_floor(Cutter *cut, PyObject *value, void *Py_UNUSED(closure))
{
    long long floor = value ? PyLong_AsLongLong(value) : 0;
    if (floor == -1 && PyErr_Occurred())
        return -1;
    store(&cut->floor, floor);
    return 0;
}

static int Cutter_traverse(Cutter *cut, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(cut));
    Py_VISIT(cut->used);
    Py_VISIT(cut->latest);
    Py_VISIT(cut->clock);
    Py_VISIT(cut->random);
    Py_VISIT(cut->held);
    Py_VISIT(cut->lent);
    Py_VISIT(cut->memory);
    Py_VISIT(cut->uuids.type);
    Py_VISIT(cut->uuids.safe);
    Py_VISIT(cut->uuids.unknown);
    return 0;
}

static void Cutter_dealloc(Cutter *cut)
{
    PyTypeObject *type = Py_TYPE(cut);
    PyObject_GC_UnTrack(cut);
    /* Its memory may be gone: the garbage collector can have cleared the memoryview before. */
    Py_CLEAR(cut->used);
    Py_CLEAR(cut->latest);
    Py_CLEAR(cut->clock);
    Py_CLEAR(cut->random);
    Py_CLEAR(cut->held);
    Py_CLEAR(cut->lent);
    Py_CLEAR(cut->memory);
    Py_CLEAR(cut->uuids.type);
    Py_CLEAR(cut->uuids.safe);
    Py_CLEAR(cut->uuids.unknown);
    Py_CLEAR(cut->uuids.names);
    type->tp_free(cut);
    Py_DECREF(type);
}

static PyMethodDef cutter_methods[] = {
    {"hold", (PyCFunction)Cutter_hold, METH_VARARGS,
     "hold($self, page, at, token, begin, end, tell_at, origin, /)\n--\n\n"
     "Take ticks of a lane while *token* is at *at* in the words of *page*.\n\n"
     "They are at *begin* or later, and before *end*, *tell_at* and the horizon in the page. None is\n"
     "before the time field of the kind."},
    {"lend", (PyCFunction)Cutter_lend, METH_VARARGS,
     "lend($self, first, end, begin, deadline, marked, origin, safe, epochs, epoch, /)\n--\n\n"
     "Take the places ``first .. end`` while UTC is in the span from *begin* to ``deadline[0]``,\n"
     "*used* is at *marked*, and ``epochs[0]`` is *epoch*."},
    {"take_back", (PyCFunction)Cutter_take_back, METH_NOARGS,
     "take_back($self, /)\n--\n\nReturn the first place that is left of those that were lent."},
    {"one", (PyCFunction)Cutter_one, METH_O,
     "one($self, form, /)\n--\n\nReturn the next id in *form*, or None if there has to be a refill."},
    {"many", (PyCFunction)Cutter_many, METH_VARARGS,
     "many($self, form, first, count, origin, safe, /)\n--\n\n"
     "Return the ids of *count* places in *form*, in a list. Raises ValueError as ``lend`` does."},
    {"packed", (PyCFunction)Cutter_packed, METH_VARARGS,
     "packed($self, first, count, origin, /)\n--\n\n"
     "Return the bytes of the ids of *count* places, in one piece. Raises as ``many`` does."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cutter_attributes[] = {
    {"floor", (getter)Cutter_get_floor, (setter)Cutter_set_floor,
     "The first tick after all that were used of blocks.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot cutter_slots[] = {
    {Py_tp_doc, "Cutter(kind, memory, used, latest, max_age, clock, random, uuids)\n--\n\n"
                "The ids of *kind*, of what was lent of a block or, if there is nothing, of a lane."},
    {Py_tp_new, Cutter_new},
    {Py_tp_dealloc, Cutter_dealloc},
    {Py_tp_traverse, Cutter_traverse},
    {Py_tp_methods, cutter_methods},
    {Py_tp_getset, cutter_attributes},
    {0, NULL},
};

PyType_Spec cutter_spec = {
    .name = "uuidd_client._core.Cutter",
    .basicsize = sizeof(Cutter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = cutter_slots,
};
