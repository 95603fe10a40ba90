/* The compiled part of uuidd_client. Nothing needs it: all that it does, the client also does in
 * Python, more slowly.
 *
 * The build (build_hook.py) defines UUIDD_VERSION, the version of the package, and UUIDD_SOURCE, a
 * digest of the C sources. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if SIZEOF_VOID_P < 8
#error "the extension is for machines with 64 bits"
#endif

static int core_exec(PyObject *module)
{
    return PyModule_AddStringConstant(module, "VERSION", UUIDD_VERSION) < 0
                   || PyModule_AddStringConstant(module, "SOURCE", UUIDD_SOURCE) < 0
               ? -1
               : 0;
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, (void *)core_exec},
    {0, NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "uuidd_client._core",
    .m_size = 0,
    .m_slots = core_slots,
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
