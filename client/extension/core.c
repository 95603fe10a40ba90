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
 *    tracks, where a clock or a source of random bytes other than the system's is called, and where a
 *    source or a Cutter ends. It may draw ids, fork, and change the Cutter. So before a place is
 *    reserved, UTC is read again after it. The look at the life comes last. A Draw lets go of a
 *    Cutter while it has no id.
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

static int read_name(const char *what, PyObject *name, const char *const *names, int count, int *at)
{
    for (*at = 0; PyUnicode_Check(name) && *at < count; ++*at)
        if (!PyUnicode_CompareWithASCIIString(name, names[*at]))
            return 1;
    PyErr_Format(PyExc_ValueError, "there is no %s %R", what, name);
    return 0;
}

int read_kind(PyObject *name, void *kind)
{
    return read_name("kind", name, KIND_NAMES, KINDS, kind);
}

int read_form(PyObject *name, void *form)
{
    return read_name("form", name, FORM_NAMES, FORMS, form);
}

static int core_exec(PyObject *module)
{
    PyType_Spec *const specs[] = {&cutter_spec, &draw_spec};
    if (find_uuids(PyModule_GetState(module)) < 0
        || PyModule_AddStringConstant(module, "VERSION", UUIDD_VERSION) < 0
        || PyModule_AddStringConstant(module, "SOURCE", UUIDD_SOURCE) < 0)
        return -1;
    for (int at = 0; at < 2; at++) {
        PyObject *type = PyType_FromModuleAndSpec(module, specs[at], NULL);
        int added = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
        Py_XDECREF(type);
        if (added < 0)
            return -1;
    }
    return 0;
}

/* Not before, because each Cutter uses them. */
static void core_free(void *module)
{
    struct uuids *uuids = PyModule_GetState(module);
    Py_CLEAR(uuids->type);
    Py_CLEAR(uuids->safe);
    Py_CLEAR(uuids->unknown);
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
    .m_size = sizeof(struct uuids),
    .m_slots = core_slots,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&core_module);
}
