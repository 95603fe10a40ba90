/* What a Cutter is refilled with: the lane that it holds, and the places that it is lent. */

#include "core.h"

static void store_origin(struct origin *place, const struct origin *origin)
{
    store(&place->node, origin->node);
    store(&place->clock_seq, origin->clock_seq);
    store(&place->worker, origin->worker);
    store(&place->epoch, origin->epoch);
    store(&place->lane, origin->lane);
}

static void begin_change(Cutter *cut)
{
    store(&cut->changes, cut->changes + 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void end_change(Cutter *cut)
{
    drop_random(cut);
    store_release(&cut->changes, cut->changes + 1);
}

/* Adds the words of a page to those that are held, and returns them; NULL with an exception. */
static const uint64_t *add_page(Cutter *cut, PyObject *page, Py_ssize_t at)
{
    PyObject *words = attribute(page, "words");
    PyObject *view = words ? PyMemoryView_FromObject(words) : NULL;
    const uint64_t *found = NULL;
    Py_XDECREF(words);
    if (!view)
        return NULL;
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
    if (at <= HORIZON_AT || at >= buffer->len / 8 || !PyBuffer_IsContiguous(buffer, 'C')
        || (uintptr_t)buffer->buf % 8)
        PyErr_SetString(PyExc_ValueError, "the words of the page must have a token there");
    else if (buffer->buf == cut->lane.words || PyList_Append(cut->held, view) == 0)
        found = buffer->buf;
    Py_DECREF(view);
    return found;
}

const uint64_t *epochs_of(PyObject *value, const uint64_t *known, PyObject *list)
{
    PyObject *view = PyMemoryView_FromObject(value);
    const uint64_t *found = NULL;
    if (!view)
        return NULL;
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
    if (buffer->len != 8 || (uintptr_t)buffer->buf % 8)
        PyErr_SetString(PyExc_ValueError, "the epoch must be one aligned word");
    else if (buffer->buf == known || PyList_Append(list, view) == 0)
        found = buffer->buf;
    Py_DECREF(view);
    return found;
}

PyObject *Cutter_hold(Cutter *cut, PyObject *args)
{
    PyObject *page, *origin_value;
    Py_ssize_t at;
    struct origin origin;
    long long begin, end, tell_at;
    unsigned long long token;

    if (!PyArg_ParseTuple(args, "OnKLLLO:hold", &page, &at, &token, &begin, &end, &tell_at,
                          &origin_value)
        || read_origin(cut->kind, origin_value, &origin) < 0)
        return NULL;
    if (begin < first_time(cut->kind, &origin))
        begin = first_time(cut->kind, &origin);
    const uint64_t *words = add_page(cut, page, at);
    if (!words)
        return NULL;
    begin_change(cut);
    store(&cut->lane.at, at);
    store(&cut->lane.token, token);
    store(&cut->lane.begin, begin);
    store(&cut->lane.end, end);
    store(&cut->lane.tell_at, tell_at);
    store_origin(&cut->lane.origin, &origin);
    store_release(&cut->lane.words, words);
    end_change(cut);
    return drop_former(cut->held) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *Cutter_lend(Cutter *cut, PyObject *args)
{
    PyObject *deadline, *origin_value, *epochs_value;
    long long first, end, marked;
    unsigned long long epoch;
    double begin;
    int safe;
    struct origin origin;
    Py_buffer slot;

    if (!PyArg_ParseTuple(args, "LLdOLOpOK:lend", &first, &end, &begin, &deadline, &marked,
                          &origin_value, &safe, &epochs_value, &epoch)
        || read_origin(cut->kind, origin_value, &origin) < 0)
        return NULL;
    if (first < 0 || end < first || !has_time(cut->kind, first, end - first, &origin)) {
        PyErr_Format(PyExc_ValueError, "the places %lld to %lld have no time that fits", first, end);
        return NULL;
    }
    if (PyObject_GetBuffer(deadline, &slot, PyBUF_WRITABLE) < 0)
        return NULL;
    double *at = slot.buf;
    bool within = (uint8_t *)at > (const uint8_t *)cut->alive
                  && (uint8_t *)at + 8 <= cut->pool.bytes && (uintptr_t)at % 8 == 0;
    PyBuffer_Release(&slot);
    if (!within) {
        PyErr_SetString(PyExc_ValueError, "the deadline must be in the memory of the cutter");
        return NULL;
    }
    const uint64_t *epochs = epochs_of(epochs_value, cut->run.epochs, cut->lent);
    if (!epochs)
        return NULL;
    begin_change(cut);
    store(&cut->run.epoch, epoch);
    store(&cut->run.epochs, epochs);
    store(&cut->run.marked, marked);
    store(&cut->run.safe, safe);
    __atomic_store(&cut->run.begin, &begin, __ATOMIC_RELAXED);
    store(&cut->run.deadline, at);
    store_origin(&cut->run.origin, &origin);
    store(&cut->run.first, first);
    store_release(&cut->run.end, end);
    end_change(cut);
    return drop_former(cut->lent) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *Cutter_take_back(Cutter *cut, PyObject *Py_UNUSED(none))
{
    begin_change(cut);
    int64_t end = __atomic_exchange_n(&cut->run.end, 0, __ATOMIC_ACQ_REL);
    int64_t first = __atomic_exchange_n(&cut->run.first, 0, __ATOMIC_ACQ_REL);
    end_change(cut);
    return PyLong_FromLongLong(first < end ? first : end);
}
