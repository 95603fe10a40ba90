/* Cutter: the ids of one source after another. cutter.py is its twin in Python. */

#include "core.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

/* How often the clock is read for an id, if it does not move on. */
#define MOST_READINGS 64

/* How many ticks an id may lag behind UTC, if it follows another. */
#define LONGEST_LAG 50

/* How many ticks before the latest a list begins, so that the next lists have ticks too. */
#define LONGEST_SPARE 5000

/* How long random bytes are kept, in nanoseconds, and how many are read at first, and at most. */
#define LONGEST_KEPT 1000000
#define FIRST_RANDOM 128
#define MOST_RANDOM_KEPT 1024

#define load(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define load_acquire(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)

/* A Source of channel.py. It lasts while *horizon and *token are in memory that others write. */
struct source {
    int64_t first, end, since, until;
    struct origin origin;
    bool safe, lane;
    const uint64_t *horizon, *token;
    uint64_t value;
};

/* Random bytes that were read at *begin*, in nanoseconds of UTC: the first *left* ones are left of
 * about *size*. */
struct pool {
    uint8_t bytes[MOST_RANDOM_KEPT + MOST_RANDOM];
    size_t size, left;
    int64_t begin, age;
};

struct cutter {
    PyObject_HEAD
    PyObject *life; /* A memoryview. Its first word is 0 once the life is over. */
    const uint64_t *alive;
    PyObject *clock, *random; /* None for those of the system. */
    PyObject *source;         /* The Source that *from* was read from. */
    struct source from;
    int64_t used, lag, spare;
    struct pool pool;
    const struct uuids *uuids; /* Those of the type's State. */
};

/* FAILED is with an exception; after AGAIN the clock is read once more. */
enum found { NONE, AGAIN, FOUND, FAILED };

/* --- time and random bytes */

static int64_t tick_of(int64_t nanoseconds)
{
    int64_t ticks = nanoseconds / 100;
    return UNIX_EPOCH + ticks - (nanoseconds % 100 < 0);
}

static enum found read_clock(Cutter *cut, int64_t *nanoseconds)
{
    if (cut->clock == Py_None) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        *nanoseconds = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        return FOUND;
    }
    PyObject *now = PyObject_CallNoArgs(cut->clock);
    if (!now)
        return FAILED;
    int overflow;
    *nanoseconds = PyLong_AsLongLongAndOverflow(now, &overflow);
    Py_DECREF(now);
    if (*nanoseconds == -1 && !overflow && PyErr_Occurred())
        return FAILED;
    /* Of a clock that a test has set to before 1677 or after 2262: there are no such sources. */
    return overflow ? NONE : FOUND;
}

/* Fills bytes with random ones; -1 with an exception. */
static int read_random(Cutter *cut, uint8_t *bytes, size_t size)
{
    size_t have = 0;
    while (cut->random == Py_None && have < size) {
        ssize_t got = getrandom(bytes + have, size - have, 0);
        if (got >= 0)
            have += (size_t)got;
        else if (errno != EINTR) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
    }
    if (have == size)
        return 0;
    PyObject *found = PyObject_CallFunction(cut->random, "n", (Py_ssize_t)size);
    if (!found)
        return -1;
    if (!PyBytes_Check(found) || (size_t)PyBytes_GET_SIZE(found) != size) {
        PyErr_SetString(PyExc_ValueError, "the source of random bytes returned something else");
        Py_DECREF(found);
        return -1;
    }
    memcpy(bytes, PyBytes_AS_STRING(found), size);
    Py_DECREF(found);
    return 0;
}

static void drop_random(Cutter *cut)
{
    memset(cut->pool.bytes, 0, sizeof cut->pool.bytes);
    cut->pool.left = 0;
}

/* Takes the random bytes of one id. Returns 1 if the pool had none, so that they took some time or
 * even Python code, 0 if it had, -1 for an exception. */
static int take_random(Cutter *cut, int64_t now, uint8_t *bytes, size_t size)
{
    struct pool *pool = &cut->pool;
    int read = 0;
    bool old = now < pool->begin || now - pool->begin >= pool->age;
    if (old || pool->left < size) {
        drop_random(cut);
        pool->size = old || !pool->size ? FIRST_RANDOM : 2 * pool->size;
        if (pool->size > MOST_RANDOM_KEPT)
            pool->size = MOST_RANDOM_KEPT;
        size_t wanted = pool->age ? pool->size - pool->size % size : size;
        /* Python's source of random bytes may run code that makes an id, of bytes of its own. */
        read = read_random(cut, pool->bytes, wanted) < 0 ? -1 : 1;
        if (read > 0) {
            pool->left = wanted;
            pool->begin = now;
        }
    }
    if (read >= 0) {
        /* From the end, so what lies behind has been used before, and may be wiped once more. */
        pool->left -= size;
        memcpy(bytes, pool->bytes + pool->left, MOST_RANDOM);
        memset(pool->bytes + pool->left, 0, MOST_RANDOM);
    }
    return read;
}

/* --- places */

struct cut {
    int64_t first, count;
    struct origin origin;
    bool safe;
};

/* Reserves up to count places of a source at UTC now; of one that is fresh, whatever UTC is. The
 * horizon is read after UTC, and the token last: see core/timeline/leases.py. */
static enum found reserve(Cutter *cut, const struct source *from, bool fresh, int64_t now,
                          int64_t count, struct cut *made)
{
    if (!from->token || (!fresh && (now < from->since || now >= from->until))
        || (uint64_t)now >= load_acquire(from->horizon)
        || load_acquire(from->token) != from->value)
        return NONE;
    int64_t used = cut->used, first = used > from->first ? used : from->first, end = from->end;
    if (from->lane) {
        end = now + 1;
        if (count > 1) {
            if (first < end - count - cut->spare)
                first = end - count - cut->spare;
        } else if (now - used >= cut->lag || used < from->first)
            first = first > now ? first : now;
    }
    if (first >= end)
        return from->lane && first == end ? AGAIN : NONE;
    made->first = first;
    made->count = end - first < count ? end - first : count;
    made->origin = from->origin;
    made->safe = from->safe;
    cut->used = first + made->count;
    return FOUND;
}

/* Reserves one place, and takes the random bytes of an id of the kind. */
static enum found reserve_one(Cutter *cut, enum kind kind, struct cut *made, uint8_t *random)
{
    size_t size = random_size(kind, -1);
    bool drawn = !size;
    for (int reading = 0; reading < MOST_READINGS; reading++) {
        int64_t now;
        enum found found = read_clock(cut, &now);
        if (found != FOUND)
            return found;
        if (!drawn) {
            int read = take_random(cut, now, random, size);
            if (read < 0)
                return FAILED;
            drawn = true;
            if (read)
                continue;
        }
        found = reserve(cut, &cut->from, false, tick_of(now), 1, made);
        if (found != AGAIN)
            return found;
    }
    return NONE;
}

PyObject *cut_one(Cutter *cut, enum kind kind, enum form form)
{
    PyObject *uuid = NULL, *made = NULL;
    uint8_t random[MOST_RANDOM];
    struct cut place = {0};
    enum found found;

    if (form == AS_UUID && cut->uuids->int_at && !(uuid = new_uuid(cut->uuids)))
        return NULL;
    Py_BEGIN_CRITICAL_SECTION(cut);
    found = reserve_one(cut, kind, &place, random);
    Py_END_CRITICAL_SECTION();
    if (found == FOUND) {
        /* Those of a lane have 8 random bits less. */
        size_t spare = random_size(kind, -1) - random_size(kind, place.origin.lane);
        struct bits id = id_bits(kind, place.first, &place.origin, random + spare);
        made = id_object(cut->uuids, kind, form, &id, place.safe, uuid);
    } else
        Py_XDECREF(uuid);
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    if (made && !load(cut->alive))
        Py_CLEAR(made);
    return made;
}

/* --- many ids at once */

static int read_source(PyObject *value, struct source *from);

/* What many and packed are asked for, and the places that are reserved for it. */
struct many {
    enum kind kind;
    struct cut cut;
    /* Random bytes are read for some ids at a time. */
    size_t size, left;
    uint8_t bytes[2048];
};

/* Reserves places for many ids; -1 with an exception. There may be none. */
static int reserve_many(Cutter *cut, struct many *many, PyObject *kind, long long count,
                        PyObject *source)
{
    struct source from;
    bool fresh = source != Py_None;
    int found_kind = kind_of(kind);
    if (found_kind < 0 || (fresh && read_source(source, &from) < 0))
        return -1;
    if (count < 0 || count > PY_SSIZE_T_MAX / MOST_BYTES) {
        PyErr_Format(PyExc_ValueError, "count is %lld; it must be 0 or more", count);
        return -1;
    }
    int64_t now;
    enum found found = read_clock(cut, &now);
    if (found == FOUND) {
        Py_BEGIN_CRITICAL_SECTION(cut);
        found = reserve(cut, fresh ? &from : &cut->from, fresh, tick_of(now), count, &many->cut);
        Py_END_CRITICAL_SECTION();
    }
    if (found == FAILED)
        return -1;
    if (found != FOUND)
        many->cut.count = 0;
    many->kind = (enum kind)found_kind;
    many->size = random_size(many->kind, many->cut.origin.lane);
    many->left = 0;
    return 0;
}

static const uint8_t *next_random(Cutter *cut, struct many *many, int64_t ids)
{
    if (!many->size)
        return many->bytes;
    if (!many->left) {
        size_t most = sizeof many->bytes / many->size;
        many->left = (ids < (int64_t)most ? (size_t)ids : most) * many->size;
        if (read_random(cut, many->bytes, many->left) < 0)
            return NULL;
    }
    many->left -= many->size;
    return many->bytes + many->left;
}

static PyObject *Cutter_many(Cutter *cut, PyObject *args)
{
    long long count;
    PyObject *kind, *form_name, *source = Py_None;
    struct many many = {0};

    if (!PyArg_ParseTuple(args, "OOL|O:many", &kind, &form_name, &count, &source))
        return NULL;
    int form = form_of(form_name);
    if (form < 0 || reserve_many(cut, &many, kind, count, source) < 0)
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)many.cut.count);
    if (!list)
        return NULL;
    /* While it has gaps, nobody finds it by way of the garbage collector. */
    PyObject_GC_UnTrack(list);
    for (int64_t at = 0; at < many.cut.count; at++) {
        const uint8_t *random = next_random(cut, &many, many.cut.count - at);
        PyObject *uuid = NULL, *made = NULL;
        if (random
            && (form != AS_UUID || !cut->uuids->int_at || (uuid = new_uuid(cut->uuids)))) {
            struct bits id = id_bits(many.kind, many.cut.first + at, &many.cut.origin, random);
            made = id_object(cut->uuids, many.kind, (enum form)form, &id, many.cut.safe, uuid);
        }
        if (!made) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)at, made);
    }
    memset(many.bytes, 0, sizeof many.bytes);
    if (list)
        PyObject_GC_Track(list);
    return list;
}

static PyObject *Cutter_packed(Cutter *cut, PyObject *args)
{
    long long count;
    PyObject *kind, *source = Py_None;
    struct many many = {0};

    if (!PyArg_ParseTuple(args, "OL|O:packed", &kind, &count, &source)
        || reserve_many(cut, &many, kind, count, source) < 0)
        return NULL;
    size_t size = byte_size(many.kind);
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)many.cut.count * (Py_ssize_t)size);
    if (!made)
        return NULL;
    uint8_t *bytes = (uint8_t *)PyBytes_AS_STRING(made);
    for (int64_t at = 0; at < many.cut.count; at++, bytes += size) {
        const uint8_t *random = next_random(cut, &many, many.cut.count - at);
        if (!random) {
            Py_CLEAR(made);
            break;
        }
        write_bytes(many.kind, id_bits(many.kind, many.cut.first + at, &many.cut.origin, random),
                    bytes);
    }
    memset(many.bytes, 0, sizeof many.bytes);
    return made;
}

static PyObject *Cutter_one(Cutter *cut, PyObject *args)
{
    PyObject *kind_name, *form_name;
    if (!PyArg_ParseTuple(args, "OO:one", &kind_name, &form_name))
        return NULL;
    int kind = kind_of(kind_name), form = kind < 0 ? -1 : form_of(form_name);
    if (form < 0)
        return NULL;
    PyObject *made = cut_one(cut, (enum kind)kind, (enum form)form);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

/* --- the source */

/* Returns where the one word of a memoryview is; NULL with an exception. */
static const uint64_t *word_of(PyObject *value)
{
    Py_buffer *buffer = PyMemoryView_Check(value) ? PyMemoryView_GET_BUFFER(value) : NULL;
    if (buffer && buffer->obj && buffer->len >= 8 && !((uintptr_t)buffer->buf % 8))
        return buffer->buf;
    PyErr_Format(PyExc_ValueError, "it is %R; it must be a memoryview of an aligned word", value);
    return NULL;
}

/* Reads a Source. It has to live as long as what was read. */
static int read_source(PyObject *value, struct source *from)
{
    PyObject *origin, *horizon, *token;
    int safe, lane;
    if (!PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "the source is %R; it must be a Source", value);
        return -1;
    }
    if (!PyArg_ParseTuple(value, "LLLLOppOOK:Source", &from->first, &from->end, &from->since,
                          &from->until, &origin, &safe, &lane, &horizon, &token, &from->value)
        || read_origin(origin, &from->origin) < 0 || !(from->horizon = word_of(horizon))
        || !(from->token = word_of(token)))
        return -1;
    if (from->first < 0 || from->since < 0) {
        PyErr_SetString(PyExc_ValueError, "first and since of a source must be 0 or more");
        return -1;
    }
    from->safe = safe;
    from->lane = lane;
    return 0;
}

static PyObject *Cutter_get_source(Cutter *cut, void *Py_UNUSED(closure))
{
    PyObject *source;
    Py_BEGIN_CRITICAL_SECTION(cut);
    source = Py_NewRef(cut->source ? cut->source : Py_None);
    Py_END_CRITICAL_SECTION();
    return source;
}

static int Cutter_set_source(Cutter *cut, PyObject *value, void *Py_UNUSED(closure))
{
    struct source from = {0};
    PyObject *former;
    if (value && value != Py_None && read_source(value, &from) < 0)
        return -1;
    Py_BEGIN_CRITICAL_SECTION(cut);
    former = cut->source;
    cut->source = Py_XNewRef(value);
    cut->from = from;
    /* Not of another lane, nor of before a clone. */
    drop_random(cut);
    cut->pool.size = 0;
    Py_END_CRITICAL_SECTION();
    /* Its end may run Python code. */
    Py_XDECREF(former);
    return 0;
}

static PyObject *Cutter_get_used(Cutter *cut, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(load(&cut->used));
}

static int Cutter_set_used(Cutter *cut, PyObject *value, void *Py_UNUSED(closure))
{
    long long used = value ? PyLong_AsLongLong(value) : -1;
    if (used < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "used must be 0 or more");
        return -1;
    }
    Py_BEGIN_CRITICAL_SECTION(cut);
    cut->used = used;
    Py_END_CRITICAL_SECTION();
    return 0;
}

static PyObject *Cutter_raise_to(Cutter *cut, PyObject *arg)
{
    long long used = PyLong_AsLongLong(arg);
    if (used == -1 && PyErr_Occurred())
        return NULL;
    Py_BEGIN_CRITICAL_SECTION(cut);
    if (cut->used < used)
        cut->used = used;
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

/* --- the type */

static PyObject *Cutter_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"life", "max_age", "clock", "random", NULL};
    PyObject *life, *clock = Py_None, *random = Py_None;
    double max_age = 0.1;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|dOO:Cutter", keywords, &life, &max_age, &clock,
                                     &random))
        return NULL;
    const uint64_t *alive = word_of(life);
    Cutter *cut = alive ? (Cutter *)type->tp_alloc(type, 0) : NULL;
    if (!cut)
        return NULL;
    cut->life = Py_NewRef(life);
    cut->alive = alive;
    cut->clock = Py_NewRef(clock);
    cut->random = Py_NewRef(random);
    cut->uuids = &state_of(type)->uuids;
    cut->lag = max_age < LONGEST_LAG / 1e7 ? (int64_t)(max_age * 1e7) : LONGEST_LAG;
    cut->spare = max_age < LONGEST_SPARE / 5e5 ? (int64_t)(max_age * 5e5) : LONGEST_SPARE;
    cut->pool.age = max_age < LONGEST_KEPT / 1e9 ? (int64_t)(max_age * 1e9) : LONGEST_KEPT;
    return (PyObject *)cut;
}

static int Cutter_traverse(Cutter *cut, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(cut));
    Py_VISIT(cut->life);
    Py_VISIT(cut->clock);
    Py_VISIT(cut->random);
    Py_VISIT(cut->source);
    return 0;
}

static void Cutter_dealloc(Cutter *cut)
{
    PyTypeObject *type = Py_TYPE(cut);
    PyObject_GC_UnTrack(cut);
    drop_random(cut);
    Py_CLEAR(cut->life);
    Py_CLEAR(cut->clock);
    Py_CLEAR(cut->random);
    Py_CLEAR(cut->source);
    type->tp_free(cut);
    Py_DECREF(type);
}

static PyMethodDef cutter_methods[] = {
    {"one", (PyCFunction)Cutter_one, METH_VARARGS,
     "one($self, kind, form, /)\n--\n\n"
     "Return the next id of *kind* in *form*, or None if there has to be a refill."},
    {"many", (PyCFunction)Cutter_many, METH_VARARGS,
     "many($self, kind, form, count, source=None, /)\n--\n\n"
     "Return up to *count* ids, in a list; none if there has to be a refill.\n\n"
     "With a *source* they are made of it, whatever UTC is."},
    {"packed", (PyCFunction)Cutter_packed, METH_VARARGS,
     "packed($self, kind, count, source=None, /)\n--\n\n"
     "Return the bytes of up to *count* ids, in one piece. Otherwise as ``many``."},
    {"raise_to", (PyCFunction)Cutter_raise_to, METH_O,
     "raise_to($self, end, /)\n--\n\nUse no place before *end*."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cutter_attributes[] = {
    {"source", (getter)Cutter_get_source, (setter)Cutter_set_source,
     "The Source of the next ids, None for none.", NULL},
    {"used", (getter)Cutter_get_used, (setter)Cutter_set_used,
     "The end of the places that were used, of whatever source.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot cutter_slots[] = {
    {Py_tp_doc, "Cutter(life, max_age=0.1, clock=None, random=None)\n--\n\n"
                "See ``uuidd_client.cutter.Cutter``."},
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
