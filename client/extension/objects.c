/* Ids as objects of Python, and what an Origin says. */

#include "core.h"

/* Finds where a type has an attribute that is set through a slot descriptor; 0 if it has not. */
static Py_ssize_t offset_of(PyTypeObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = 0;
    if (!found) {
        PyErr_Clear();
        return 0;
    }
    if (Py_IS_TYPE(found, &PyMemberDescr_Type) && PyDescr_TYPE(found) == type) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX && !(member->flags & READONLY))
            offset = member->offset;
    }
    Py_DECREF(found);
    return offset;
}

int find_uuids(struct uuids *uuids)
{
    PyObject *module = PyImport_ImportModule("uuid");
    PyObject *marks = module ? PyObject_GetAttrString(module, "SafeUUID") : NULL;
    if (marks) {
        uuids->type = (PyTypeObject *)PyObject_GetAttrString(module, "UUID");
        uuids->safe = PyObject_GetAttrString(marks, "safe");
        uuids->unknown = PyObject_GetAttrString(marks, "unknown");
        uuids->names = Py_BuildValue("(ss)", "int", "is_safe");
    }
    Py_XDECREF(marks);
    Py_XDECREF(module);
    if (!uuids->type || !uuids->safe || !uuids->unknown || !uuids->names)
        return -1;
    if (!PyType_Check(uuids->type)) {
        PyErr_Format(PyExc_TypeError, "uuid.UUID is %R; it must be a type", uuids->type);
        return -1;
    }
    uuids->int_at = offset_of(uuids->type, "int");
    uuids->safe_at = offset_of(uuids->type, "is_safe");
    if (!uuids->safe_at || uuids->type->tp_alloc != PyType_GenericAlloc || uuids->type->tp_itemsize
        || uuids->type->tp_dictoffset)
        uuids->int_at = 0;
    return 0;
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

PyObject *new_uuid(const struct uuids *uuids)
{
    return uuids->type->tp_alloc(uuids->type, 0);
}

PyObject *id_object(const struct uuids *uuids, enum kind kind, enum form form,
                    const struct bits *id, bool safe, PyObject *uuid)
{
    PyObject *made, *mark = safe ? uuids->safe : uuids->unknown;
    char text[MOST_TEXT];
    uint8_t bytes[MOST_BYTES];
    size_t size;

    switch (form) {
    case AS_UUID:
        made = int_of(id->high, id->low);
        if (made && uuid) {
            *(PyObject **)((char *)uuid + uuids->int_at) = made;
            *(PyObject **)((char *)uuid + uuids->safe_at) = Py_NewRef(mark);
            return uuid;
        }
        Py_XDECREF(uuid);
        if (!made)
            return NULL;
        PyObject *fields[] = {NULL, made, mark};
        uuid = PyObject_Vectorcall((PyObject *)uuids->type, fields + 1,
                                   PY_VECTORCALL_ARGUMENTS_OFFSET, uuids->names);
        Py_DECREF(made);
        return uuid;
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
        return PyBytes_FromStringAndSize((char *)bytes, (Py_ssize_t)byte_size(kind));
    }
}

int read_origin(PyObject *value, struct origin *origin)
{
    const struct {
        const char *name;
        int64_t *field, most;
        bool may_lack;
    } fields[] = {
        {"node", &origin->node, (INT64_C(1) << 48) - 1, false},
        {"clock_seq", &origin->clock_seq, (1 << 14) - 1, false},
        {"worker", &origin->worker, (1 << 10) - 1, true},
        {"epoch", &origin->epoch, (INT64_C(1) << 48) - 1, false},
        {"lane", &origin->lane, (1 << 8) - 1, true},
    };

    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 5) {
        PyErr_Format(PyExc_TypeError, "the origin is %R; it must be an Origin", value);
        return -1;
    }
    for (int at = 0; at < 5; at++) {
        PyObject *item = PyTuple_GET_ITEM(value, at);
        *fields[at].field = -1;
        if (item == Py_None && fields[at].may_lack)
            continue;
        *fields[at].field = PyLong_AsLongLong(item);
        if (*fields[at].field == -1 && PyErr_Occurred())
            return -1;
        if (*fields[at].field < 0 || *fields[at].field > fields[at].most) {
            PyErr_Format(PyExc_ValueError, "%s is %R; it must be 0 to %lld", fields[at].name, item,
                         (long long)fields[at].most);
            return -1;
        }
    }
    return 0;
}
