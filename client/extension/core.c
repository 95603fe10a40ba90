/* The compiled part of uuidd_client: the way from one id to the next, while no daemon has to be asked.
 * Nothing needs it: all that it does, the client also does in Python, more slowly.
 *
 * Theory of operation. channel.py says what sources, cutters and lives are; here is what is C's own.
 *
 * 1. A Cutter is the twin of cutter.py's. A Draw is what callers call: it returns an id of a Cutter in
 *    one form. Where the Cutter has none, the Draw calls Python's function for a refill, which returns
 *    an id, and the Cutter to go on with.
 * 2. The tick of a lane's id is that of the reading of UTC or, where the last one is less than
 *    LONGEST_LAG older, the one after it. So the time that it takes to read random bytes is not lost
 *    to ids in a row, which are made about as fast as ticks come. If there is no free tick up to UTC,
 *    the clock is read again until it has moved on by 0.1 us.
 * 3. The last step of an id is a look at the life. After a call, Python runs the handlers of signals,
 *    and one of them may fork. So a function of Python that returns an id must not call the Draw, but
 *    read its attribute *next*. Thus a child has no id of its parent's, wherever in these files it was
 *    forked, by whatever thread or handler.
 * 4. Python code can run while an id is made where objects are allocated that the garbage collector
 *    tracks, where a clock or a source of random bytes other than the system's is called, where
 *    uuid.UUID is called, and where a source or a Cutter ends. It may draw ids, fork, and change the
 *    Cutter. So UTC is read again after it, nothing of a source is kept over it, and the look at the
 *    life comes after it. A Draw lets go of a Cutter while it has no id.
 * 5. Random bytes are read ahead, 1 KiB at most, and twice as many each time that they are used up.
 *    They are dropped after 1 ms (or max_age), when UTC is set back, and with the source, so also when
 *    the machine was cloned. They are wiped as they are used.
 * 6. Without the GIL, threads that reserve places of one Cutter take turns, in a critical section.
 *
 * The build (build_hook.py) defines UUIDD_VERSION, the version of the package, and UUIDD_SOURCE, a
 * digest of the C sources. */

#include "core.h"

#define NAME(kind, name) name,
static const char *const KIND_NAMES[KINDS] = {KINDS_IN_ORDER(NAME)};
static const char *const FORM_NAMES[FORMS] = {"uuid", "text", "int", "bytes"};

static struct PyModuleDef core_module;

State *state_of(PyTypeObject *type)
{
    return PyModule_GetState(PyType_GetModuleByDef(type, &core_module));
}

static int index_of(const char *what, PyObject *name, const char *const *names, int count)
{
    for (int at = 0; PyUnicode_Check(name) && at < count; at++)
        if (!PyUnicode_CompareWithASCIIString(name, names[at]))
            return at;
    PyErr_Format(PyExc_ValueError, "there is no %s %R", what, name);
    return -1;
}

int kind_of(PyObject *name)
{
    return index_of("kind", name, KIND_NAMES, KINDS);
}

int form_of(PyObject *name)
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
    if (find_uuids(&state->uuids) < 0
        || PyModule_AddStringConstant(module, "VERSION", UUIDD_VERSION) < 0
        || PyModule_AddStringConstant(module, "SOURCE", UUIDD_SOURCE) < 0
        || !(state->cutter = add_type(module, &cutter_spec)))
        return -1;
    PyTypeObject *draw = add_type(module, &draw_spec);
    Py_XDECREF(draw);
    return draw ? 0 : -1;
}

static int core_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->cutter);
    return 0;
}

static int core_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->cutter);
    return 0;
}

static void core_free(void *module)
{
    /* Not before: each Cutter uses them. */
    struct uuids *uuids = &((State *)PyModule_GetState(module))->uuids;
    core_clear(module);
    Py_CLEAR(uuids->type);
    Py_CLEAR(uuids->safe);
    Py_CLEAR(uuids->unknown);
    Py_CLEAR(uuids->names);
}

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
