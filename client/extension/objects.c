/* Ids as objects of Python, and what an Origin says. */

#include "core.h"

/* Finds where a type has an attribute that is set through a slot descriptor; 0 if it has not. */
static Py_ssize_t offset_of(PyTypeObject *type, const char *name)
{
    PyObject *found = attribute((PyObject *)type, name);
    if (!found) {
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t offset = 0;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type) && PyDescr_TYPE(found) == type) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX && !(member->flags & READONLY)
            && member->offset + (Py_ssize_t)sizeof(PyObject *) <= type->tp_basicsize)
            offset = member->offset;
    }
    Py_DECREF(found);
    return offset;
}

void find_slots(struct uuids *uuids)
{
    PyTypeObject *type = uuids->type;
    uuids->int_at = offset_of(type, "int");
    uuids->safe_at = offset_of(type, "is_safe");
    if (!uuids->safe_at || type->tp_alloc != PyType_GenericAlloc || type->tp_itemsize
        || type->tp_dictoffset)
        uuids->int_at = 0;
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

/* Takes the reference to the value. */
static void set_uuid(const struct uuids *uuids, PyObject *uuid, PyObject *value, PyObject *mark)
{
    *(PyObject **)((char *)uuid + uuids->int_at) = value;
    *(PyObject **)((char *)uuid + uuids->safe_at) = Py_NewRef(mark);
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
            set_uuid(uuids, uuid, made, mark);
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

int read_origin(enum kind kind, PyObject *value, struct origin *origin)
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
    if (kind == SNOWFLAKE && origin->worker < 0) {
        PyErr_SetString(PyExc_ValueError,
                        "worker is None; a Snowflake needs a worker number, 0 to 1023");
        return -1;
    }
    return 0;
}
