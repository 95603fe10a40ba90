/* Ids as objects of Python. */

#include "core.h"

/* Returns where the objects of a class keep an attribute; 0 with an exception. */
static Py_ssize_t slot_of(PyTypeObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = 0;
    if (found && Py_IS_TYPE(found, &PyMemberDescr_Type) && PyDescr_TYPE(found) == type)
        offset = ((PyMemberDescrObject *)found)->d_member->offset;
    Py_XDECREF(found);
    if (!offset)
        PyErr_Format(PyExc_ImportError, "uuid.UUID is %R, which has no slot %s", type, name);
    return offset;
}

int find_uuids(struct uuids *uuids)
{
    PyObject *module = PyImport_ImportModule("uuid"), *marks = NULL;
    bool found = module && (marks = PyObject_GetAttrString(module, "SafeUUID"))
                 && (uuids->safe = PyObject_GetAttrString(marks, "safe"))
                 && (uuids->unknown = PyObject_GetAttrString(marks, "unknown"))
                 && (uuids->type = (PyTypeObject *)PyObject_GetAttrString(module, "UUID"))
                 && (uuids->int_at = slot_of(uuids->type, "int"))
                 && (uuids->safe_at = slot_of(uuids->type, "is_safe"));
    Py_XDECREF(marks);
    Py_XDECREF(module);
    return found ? 0 : -1;
}

/* Returns an int of 128 bits. It is made of Python's own digits, because the functions for it take
 * longer than all the rest of an id. */
static PyObject *int_of(uint64_t high, uint64_t low)
{
    if (!high)
        return PyLong_FromUnsignedLongLong(low);
    int bits = 128 - __builtin_clzll(high);
    Py_ssize_t count = (bits + PyLong_SHIFT - 1) / PyLong_SHIFT;
#if PY_VERSION_HEX >= 0x030E0000
    void *digits;
    PyLongWriter *writer = PyLongWriter_Create(0, count, &digits);
    if (!writer)
        return NULL;
    digit *at = digits;
#else
    PyLongObject *made = _PyLong_New(count);
    if (!made)
        return NULL;
#if PY_VERSION_HEX >= 0x030C0000
    digit *at = made->long_value.ob_digit;
#else
    digit *at = made->ob_digit;
#endif
#endif
    while (count--) {
        *at++ = (digit)(low & PyLong_MASK);
        low = low >> PyLong_SHIFT | high << (64 - PyLong_SHIFT);
        high >>= PyLong_SHIFT;
    }
#if PY_VERSION_HEX >= 0x030E0000
    return PyLongWriter_Finish(writer);
#else
    return (PyObject *)made;
#endif
}

PyObject *id_object(const struct uuids *uuids, enum kind kind, enum form form,
                    const struct bits *id, bool safe)
{
    PyObject *made, *number, *mark = safe ? uuids->safe : uuids->unknown;
    char text[MOST_TEXT];
    uint8_t bytes[MOST_BYTES];
    size_t size;

    switch (form) {
    case AS_UUID:
        made = uuids->type->tp_alloc(uuids->type, 0);
        number = made ? int_of(id->high, id->low) : NULL;
        if (!number) {
            Py_XDECREF(made);
            return NULL;
        }
        *(PyObject **)((char *)made + uuids->int_at) = number;
        *(PyObject **)((char *)made + uuids->safe_at) = Py_NewRef(mark);
        return made;
    case AS_TEXT:
        size = write_text(kind, *id, text);
        made = PyUnicode_New((Py_ssize_t)size, 127);
        if (made)
            memcpy(PyUnicode_1BYTE_DATA(made), text, size);
        return made;
    case AS_INT:
        return int_of(id->high, id->low);
    default:
        write_bytes(kind, *id, bytes);
        return PyBytes_FromStringAndSize((char *)bytes, SIZES[kind].bytes);
    }
}
