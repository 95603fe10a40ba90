/* Many ids of given places, at once. */

#include "core.h"

struct many {
    enum form form;
    int64_t first, count;
    struct origin origin;
    int safe;
};

static int read_many(Cutter *cut, struct many *many, long long first, long long count,
                     PyObject *origin)
{
    if (read_origin(cut->kind, origin, &many->origin) < 0)
        return -1;
    if (first < 0 || count < 0 || count > PY_SSIZE_T_MAX / MOST_BYTES
        || !has_time(cut->kind, first, count, &many->origin)) {
        PyErr_Format(PyExc_ValueError, "%lld places from %lld on have no time that fits", count,
                     first);
        return -1;
    }
    many->first = first;
    many->count = count;
    return 0;
}

/* The random bytes of many ids, read for some at a time. */
struct stock {
    size_t size, left;
    uint8_t bytes[2048];
};

static const uint8_t *next_random(Cutter *cut, struct stock *stock, int64_t ids)
{
    if (!stock->size)
        return stock->bytes;
    if (!stock->left) {
        size_t most = sizeof stock->bytes / stock->size;
        stock->left = (ids < (int64_t)most ? (size_t)ids : most) * stock->size;
        if (read_random(cut, stock->bytes, stock->left) < 0)
            return NULL;
    }
    stock->left -= stock->size;
    return stock->bytes + stock->left;
}

PyObject *Cutter_many(Cutter *cut, PyObject *args)
{
    const char *name;
    long long first, count;
    PyObject *origin;
    struct many many;

    if (!PyArg_ParseTuple(args, "sLLOp:many", &name, &first, &count, &origin, &many.safe)
        || read_many(cut, &many, first, count, origin) < 0)
        return NULL;
    int form = form_of(name);
    if (form < 0)
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    if (!list)
        return NULL;
    /* While it has gaps, nobody finds it by way of the garbage collector. */
    PyObject_GC_UnTrack(list);
    struct stock stock = {.size = random_size(cut->kind, many.origin.lane), .left = 0};
    for (int64_t at = 0; at < count; at++) {
        const uint8_t *random = next_random(cut, &stock, count - at);
        PyObject *uuid = NULL, *made = NULL;
        if (random && (form != AS_UUID || !cut->uuids.int_at || (uuid = new_uuid(&cut->uuids)))) {
            struct bits id = id_bits(cut->kind, first + at, &many.origin, random);
            made = id_object(&cut->uuids, cut->kind, (enum form)form, &id, many.safe, uuid);
        }
        if (!made) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)at, made);
    }
    memset(stock.bytes, 0, sizeof stock.bytes);
    if (list)
        PyObject_GC_Track(list);
    return list;
}

PyObject *Cutter_packed(Cutter *cut, PyObject *args)
{
    long long first, count;
    PyObject *origin;
    struct many many;

    if (!PyArg_ParseTuple(args, "LLO:packed", &first, &count, &origin)
        || read_many(cut, &many, first, count, origin) < 0)
        return NULL;
    size_t size = byte_size(cut->kind);
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)count * (Py_ssize_t)size);
    if (!made)
        return NULL;
    struct stock stock = {.size = random_size(cut->kind, many.origin.lane), .left = 0};
    uint8_t *bytes = (uint8_t *)PyBytes_AS_STRING(made);
    for (int64_t at = 0; at < count; at++, bytes += size) {
        const uint8_t *random = next_random(cut, &stock, count - at);
        if (!random) {
            Py_CLEAR(made);
            break;
        }
        write_bytes(cut->kind, id_bits(cut->kind, first + at, &many.origin, random), bytes);
    }
    memset(stock.bytes, 0, sizeof stock.bytes);
    return made;
}
