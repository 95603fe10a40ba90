/* The compiled part of uuidd_client: the way from one id to the next, while no daemon has to be asked.
 * Nothing needs it: all that it does, the client also does in Python, more slowly.
 *
 * Theory of operation
 *
 * 1. A Cutter makes the ids of one kind in one process. It has two sources of places ("layouts.py"
 *    says what a place is): a *run*, the rest of a block, and a *lane* that is leased. Python fills
 *    both (refills, blocks, leases, order and the fallback are all there, in compiled.py and below), and
 *    may take the run back. A Draw is what callers call: it returns an id of a Cutter in one form.
 *    Where a Cutter has no id, the Draw calls Python's function for a refill, which returns an id
 *    and the Cutter to go on with.
 * 2. The rules of a lane are those of core/timeline/leases.py: UTC is read first, then the horizon,
 *    then the token. That is done for each id. A tick is reserved by raising *used*, a Mark that all
 *    who use ticks of the lane for this kind share. It is the tick of that reading of UTC or, where
 *    the last one is less than LONGEST_LAG older, the one after it: so the time that it takes to
 *    read random bytes is not lost to ids in a row, which are made about as fast as ticks come. If
 *    there is no free tick up to UTC, the clock is read again until it has moved on by 0.1 us.
 * 3. A run is used before the lane, because Python lends one when the lane has none. The places of a
 *    run are older than the next id of the lane, so a run ends once the mark has moved.
 * 4. Memory that the kernel wipes in a fork's child holds *alive* (1.0), the deadlines of runs, and
 *    the random bytes that were read ahead. The last step of an id is a look at *alive*. After a
 *    call, Python runs the handlers of signals, and one of them may fork. So a function of Python
 *    that returns an id must not call the Draw, but read its attribute *next*. Thus a child
 *    has no id of its parent's, wherever in this file it was forked, by whatever thread or handler.
 * 5. Python code can run while an id is made where objects are allocated that the garbage collector
 *    tracks, where a clock or a source of random bytes other than the system's is called, and where
 *    uuid.UUID is called. It may draw ids, fork, and change the Cutter. So the first two come before
 *    the clock is read for the last time, and nothing of the Cutter that Python may change is kept
 *    over them; the third comes before the look at *alive*. A page that another takes the place of is
 *    let go of after the change: none of that code runs between a load of a pointer into a page and
 *    its use. A Draw has a reference to the Cutter that it draws from. The end of a page or a Cutter
 *    runs Python code too, so a Draw lets go of former Cutters before it calls for a refill, while
 *    it has no id. If its Cutter is a former one when the id is made, the id is dropped.
 * 6. The clock is an argument. If it is None, clock_gettime(2) is called here, which libfaketime replaces.
 * 7. Random bytes are read ahead, 1 KiB at most, and twice as many each time that they are
 *    used up. They are dropped after 1 ms (or max_age), when UTC is set back, when another lane is
 *    leased, and when the machine was cloned, and wiped as they are used. While one thread or handler
 *    uses the pool, others read from the system.
 * 8. Without the GIL, several threads use a Cutter at once, and none waits for another. A tick is
 *    reserved by compare-and-swap, a place of a run by fetch-and-add. *changes* counts the changes
 *    of the sources, twice each: it is odd during one. Whoever finds another count after reserving
 *    drops what was reserved, because it may be of one source and its origin of another; a place
 *    that is dropped is not used by anybody. Python changes the sources under the channel's lock.
 *    With the GIL all this costs next to nothing, so there is one way for both. But without
 *    the GIL former pages and Cutters stay, because another thread may be using one that it has no
 *    reference to. The module says that it does not need the GIL: CPython would bring it back
 *    otherwise. tests/client/test_core_threads.py fails without any one of these steps, on a CPython
 *    without the GIL.
 *
 * 9. If the machine was cloned, a copy of this process has all that is here. The daemon clears the
 *    tokens then, and moves on the epoch, another word of its page. A run ends with its epoch. Random
 *    bytes that were read ahead end with the epoch of the page that the process was passed last.
 *
 * The build (build_hook.py) defines UUIDD_VERSION, the version of the package, and UUIDD_SOURCE, a
 * digest of the C sources. */

#include "core.h"

static const char *const KIND_NAMES[KINDS] = {"v1",   "v4",    "v6",      "v7", "snowflake", "flake",
                                              "ulid", "ksuid", "push_id"};
static const char *const FORM_NAMES[FORMS] = {"uuid", "text", "int", "bytes"};

static struct PyModuleDef core_module;

State *state_of(PyTypeObject *type)
{
    return PyModule_GetState(PyType_GetModuleByDef(type, &core_module));
}

static int index_of(const char *what, const char *name, const char *const *names, int count)
{
    for (int at = 0; at < count; at++)
        if (!strcmp(name, names[at]))
            return at;
    PyErr_Format(PyExc_ValueError, "there is no %s '%s'", what, name);
    return -1;
}

PyObject *attribute(PyObject *of, const char *name)
{
    PyObject *interned = PyUnicode_InternFromString(name);
    PyObject *found = interned ? PyObject_GetAttr(of, interned) : NULL;
    Py_XDECREF(interned);
    return found;
}

int kind_of(const char *name)
{
    return index_of("kind", name, KIND_NAMES, KINDS);
}

int form_of(const char *name)
{
    return index_of("form", name, FORM_NAMES, FORMS);
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

static int core_exec(PyObject *module)
{
    State *state = PyModule_GetState(module);
    PyTypeObject *draw, *ids;
    /* A few bytes for good, since a Cutter may outlive the module. */
    if (!(state->epochs = PyMem_RawCalloc(1, sizeof *state->epochs))) {
        PyErr_NoMemory();
        return -1;
    }
    if (!(state->watched = PyList_New(0))
        || PyModule_AddStringConstant(module, "VERSION", UUIDD_VERSION) < 0
        || PyModule_AddStringConstant(module, "SOURCE", UUIDD_SOURCE) < 0
        || !(state->uuid_fields = Py_BuildValue("(ss)", "int", "is_safe"))
        || !(state->mark = add_type(module, &mark_spec))
        || !(state->cutter = add_type(module, &cutter_spec))
        || !(draw = add_type(module, &draw_spec)))
        return -1;
    Py_DECREF(draw);
    if (!(ids = add_type(module, &ids_spec)))
        return -1;
    Py_DECREF(ids);
    PyObject *system = PyImport_ImportModule("posix");
    state->urandom = system ? attribute(system, "urandom") : NULL;
    Py_XDECREF(system);
    return state->urandom ? 0 : -1;
}

static int core_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->mark);
    Py_VISIT(state->cutter);
    Py_VISIT(state->urandom);
    Py_VISIT(state->watched);
    return 0;
}

static int core_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->mark);
    Py_CLEAR(state->cutter);
    Py_CLEAR(state->urandom);
    Py_CLEAR(state->uuid_fields);
    if (state->epochs)
        store(state->epochs, NULL);
    Py_CLEAR(state->watched);
    return 0;
}

static void core_free(void *module)
{
    core_clear(module);
}

static PyObject *core_watch(PyObject *module, PyObject *value)
{
    State *state = PyModule_GetState(module);
    const uint64_t *epochs = epochs_of(value, load(state->epochs), state->watched);
    if (!epochs)
        return NULL;
    store_release(state->epochs, epochs);
    return drop_former(state->watched) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef core_methods[] = {
    {"shortcut", shortcut, METH_VARARGS,
     "shortcut(function, draw, /)\n--\n\n"
     "Let calls of *function* go to *draw* directly, if Python can (3.12 or newer).\n\n"
     "All that the function does must be to call *draw*, the first variable of its closure."},
    {"watch", core_watch, METH_O,
     "watch(epochs, /)\n--\n\n"
     "Drop random bytes that were read ahead once ``epochs[0]``, a word of a page, has changed."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, (void *)core_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "uuidd_client._core",
    .m_size = sizeof(State),
    .m_methods = core_methods,
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    /* Structures differ between versions of CPython. The name of the file says which it is for, but
     * files are renamed. */
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
        PyErr_Format(PyExc_ImportError, "it is for Python %d.%d, and this is %lu.%lu",
                     PY_MAJOR_VERSION, PY_MINOR_VERSION, Py_Version >> 24, Py_Version >> 16 & 0xFF);
        return NULL;
    }
    return PyModuleDef_Init(&core_module);
}
