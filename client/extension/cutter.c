/* Cutter: the ids of one source after another. cutter.py is its twin in Python. */

#include "core.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

/* How often the clock is read for an id, if it does not move on. */
#define MOST_READINGS 64

/* How many ticks an id may lag behind UTC, if it follows another. */
#define LONGEST_LAG 50

/* How many ticks before the latest a list begins, if max_age allows, so that the next lists have
 * ticks too. */
#define LONGEST_SPARE 5000

/* How many ticks random bytes are kept, and how many bytes are read at first, and at most. */
#define LONGEST_KEPT 10000
#define FIRST_RANDOM 128
#define MOST_RANDOM_KEPT 1024

#define load_acquire(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)

/* A Source of life.py. It lasts while *horizon and *token are in memory that others write. */
struct source {
    int64_t first, end, since, until;
    struct origin origin;
    int safe, lane;
    const uint64_t *horizon, *token;
    uint64_t value;
};

/* Random bytes that were read at the tick *begin*, and are kept for *age* ticks: the first *left* ones
 * are left of about *size*. */
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
    int64_t used, age, lag, spare;
    struct pool pool;
    const struct uuids *uuids;
};

/* FAILED is with an exception; after AGAIN the clock is read once more. */
enum found { NONE, AGAIN, FOUND, FAILED };

/* --- time and random bytes */

/* Reads the tick of UTC now; -1 with an exception. */
static int read_clock(Cutter *cut, int64_t *tick)
{
    if (cut->clock == Py_None) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        *tick = UNIX_EPOCH + (int64_t)now.tv_sec * TICKS_PER_SECOND + now.tv_nsec / 100;
        return 0;
    }
    PyObject *now = PyObject_CallNoArgs(cut->clock);
    if (!now)
        return -1;
    long long nanoseconds = PyLong_AsLongLong(now);
    Py_DECREF(now);
    *tick = UNIX_EPOCH + nanoseconds / 100 - (nanoseconds % 100 < 0);
    return nanoseconds == -1 && PyErr_Occurred() ? -1 : 0;
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

/* Reads random bytes ahead for ids that take some each: as the first ones, or because those that were
 * read before are used up. -1 with an exception. */
static int read_ahead(Cutter *cut, size_t each, bool first)
{
    struct pool *pool = &cut->pool;
    drop_random(cut);
    pool->size = first || !pool->size ? FIRST_RANDOM : 2 * pool->size;
    if (pool->size > MOST_RANDOM_KEPT)
        pool->size = MOST_RANDOM_KEPT;
    size_t wanted = pool->age ? pool->size - pool->size % each : each;
    /* Python's source of random bytes may run code that makes an id, of bytes of its own. */
    if (read_random(cut, pool->bytes, wanted) < 0)
        return -1;
    pool->left = wanted;
    return 0;
}

/* --- places */

struct cut {
    int64_t first, count;
    struct origin origin;
    bool safe;
};

/* Reserves up to count places of a source at UTC now; of one that is not the cutter's, whatever UTC
 * is. The horizon is read after UTC, and the token last: see core/timeline/leases.py. */
static enum found reserve(Cutter *cut, const struct source *from, int64_t now, int64_t count,
                          struct cut *made)
{
    bool own = from == &cut->from;
    if (!from->token || (own && (now < from->since || now >= from->until))
        || (uint64_t)now >= load_acquire(from->horizon)
        || load_acquire(from->token) != from->value)
        return NONE;
    int64_t used = cut->used, first = used > from->first ? used : from->first, end = from->end;
    if (from->lane) {
        end = now + 1;
        if (count > 1) {
            int64_t spare = cut->age - count < cut->spare ? cut->age - count : cut->spare;
            int64_t begin = end - count - (spare > 0 ? spare : 0);
            first = first > begin ? first : begin;
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
    struct pool *pool = &cut->pool;
    size_t size = random_size(kind, -1);
    bool read = !size;
    for (int reading = 0; reading < MOST_READINGS; reading++) {
        int64_t now;
        if (read_clock(cut, &now) < 0)
            return FAILED;
        bool old = !read && (now < pool->begin || now - pool->begin >= pool->age);
        if (old || pool->left < size) {
            if (now < cut->from.since || now >= cut->from.until)
                /* Random bytes that no id uses would cost as much as many ids. */
                return NONE;
            /* That took time, or even ran Python code. */
            if (read_ahead(cut, size, old) < 0)
                return FAILED;
            pool->begin = now;
            read = true;
            continue;
        }
        enum found found = reserve(cut, &cut->from, now, 1, made);
        if (found == FOUND && size) {
            /* What lies behind them has been used before, and may be wiped once more. */
            pool->left -= size;
            memcpy(random, pool->bytes + pool->left, MOST_RANDOM);
            memset(pool->bytes + pool->left, 0, MOST_RANDOM);
        }
        if (found != AGAIN)
            return found;
    }
    return NONE;
}

PyObject *cut_one(Cutter *cut, enum kind kind, enum form form)
{
    PyObject *made = NULL;
    uint8_t random[MOST_RANDOM];
    struct cut place = {0};
    enum found found;

    Py_BEGIN_CRITICAL_SECTION(cut);
    found = reserve_one(cut, kind, &place, random);
    Py_END_CRITICAL_SECTION();
    if (found == FOUND) {
        /* Those of a lane have 8 random bits less. */
        size_t spare = random_size(kind, -1) - random_size(kind, place.origin.lane);
        struct bits id = id_bits(kind, place.first, &place.origin, random + spare);
        made = id_object(cut->uuids, kind, form, &id, place.safe);
    }
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    if (made && !load_acquire(cut->alive))
        Py_CLEAR(made);
    return made;
}

static PyObject *Cutter_one(Cutter *cut, PyObject *args)
{
    enum kind kind;
    enum form form;
    if (!PyArg_ParseTuple(args, "O&O&:one", read_kind, &kind, read_form, &form))
        return NULL;
    PyObject *made = cut_one(cut, kind, form);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

/* --- what Python passes: these read it for "O&" of PyArg_ParseTuple */

/* Finds the one word of a memoryview, which has to live as long as the word is read. */
static int read_word(PyObject *value, void *word)
{
    Py_buffer *buffer = PyMemoryView_Check(value) ? PyMemoryView_GET_BUFFER(value) : NULL;
    if (buffer && buffer->obj && buffer->len >= 8 && !((uintptr_t)buffer->buf % 8)) {
        *(const uint64_t **)word = buffer->buf;
        return 1;
    }
    PyErr_Format(PyExc_ValueError, "it is %R; it must be a memoryview of an aligned word", value);
    return 0;
}

/* Reads an int, or -1 for None. */
static int read_optional(PyObject *value, void *number)
{
    *(int64_t *)number = value == Py_None ? -1 : PyLong_AsLongLong(value);
    return !PyErr_Occurred();
}

/* Reads a Source, which has to live as long as what was read; for None, one that has no places. */
static int read_source(PyObject *value, void *source)
{
    struct source *from = source;
    struct origin *origin = &from->origin;
    *from = (struct source){0};
    if (value == Py_None)
        return 1;
    if (!PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "the source is %R; it must be a Source", value);
        return 0;
    }
    PyObject *where;
    /* A tuple within the format would tell of a lack of memory by a TypeError. */
    if (!PyArg_ParseTuple(value, "LLLLO!ppO&O&K:Source", &from->first, &from->end, &from->since,
                          &from->until, &PyTuple_Type, &where, &from->safe, &from->lane, read_word,
                          &from->horizon, read_word, &from->token, &from->value)
        || !PyArg_ParseTuple(where, "LLO&LO&:Origin", &origin->node, &origin->clock_seq,
                             read_optional, &origin->worker, &origin->epoch, read_optional,
                             &origin->lane))
        return 0;
    if (from->first < 0 || from->since < 0 || origin->node >> 48 || origin->clock_seq >> 14
        || origin->worker < -1 || origin->worker > 1023 || origin->epoch >> 48 || origin->lane < -1
        || origin->lane > 255) {
        PyErr_Format(PyExc_ValueError, "the source is %R; a number of it is out of its range", value);
        return 0;
    }
    return 1;
}

/* --- many ids at once */

static PyObject *Cutter_many(Cutter *cut, PyObject *args)
{
    enum kind kind;
    enum form form;
    long long count;
    struct source given = {0};
    struct cut places = {0};
    int64_t now;
    uint8_t random[2048];
    size_t left = 0;

    if (!PyArg_ParseTuple(args, "O&O&L|O&:many", read_kind, &kind, read_form, &form, &count,
                          read_source, &given))
        return NULL;
    if (count < 0 || count > PY_SSIZE_T_MAX / MOST_BYTES)
        return PyErr_Format(PyExc_ValueError, "count is %lld; it must be 0 or more", count);
    if (read_clock(cut, &now) < 0)
        return NULL;
    Py_BEGIN_CRITICAL_SECTION(cut);
    reserve(cut, given.token ? &given : &cut->from, now, count, &places);
    Py_END_CRITICAL_SECTION();
    size_t size = random_size(kind, places.origin.lane);
    Py_ssize_t each = SIZES[kind].bytes, total = (Py_ssize_t)places.count;
    PyObject *made =
        form == AS_BYTES ? PyBytes_FromStringAndSize(NULL, total * each) : PyList_New(total);
    if (made && form != AS_BYTES)
        /* While it has gaps, nobody finds it by way of the garbage collector. */
        PyObject_GC_UnTrack(made);
    for (Py_ssize_t at = 0; made && at < total; at++) {
        if (size && !left) {
            /* Random bytes of some ids at a time. */
            size_t most = sizeof random / size, ids = (size_t)(total - at);
            left = (ids < most ? ids : most) * size;
            if (read_random(cut, random, left) < 0) {
                Py_CLEAR(made);
                break;
            }
        }
        left -= size;
        struct bits id = id_bits(kind, places.first + at, &places.origin, random + left);
        if (form == AS_BYTES)
            write_bytes(kind, id, (uint8_t *)PyBytes_AS_STRING(made) + at * each);
        else {
            PyObject *one = id_object(cut->uuids, kind, form, &id, places.safe);
            if (one)
                PyList_SET_ITEM(made, at, one);
            else
                Py_CLEAR(made);
        }
    }
    memset(random, 0, sizeof random);
    if (made && form != AS_BYTES)
        PyObject_GC_Track(made);
    return made;
}

/* --- attributes */

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
    if (value && !read_source(value, &from))
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
    return PyLong_FromLongLong(load_acquire(&cut->used));
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
    const uint64_t *alive;
    double max_age = 0.1;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|dOO:Cutter", keywords, &life, &max_age, &clock,
                                     &random)
        || !read_word(life, &alive))
        return NULL;
    Cutter *cut = (Cutter *)type->tp_alloc(type, 0);
    if (!cut)
        return NULL;
    cut->life = Py_NewRef(life);
    cut->alive = alive;
    cut->clock = Py_NewRef(clock);
    cut->random = Py_NewRef(random);
    cut->uuids = PyType_GetModuleState(type);
    /* No list spans more than a second. */
    int64_t age = (int64_t)((max_age < 2 ? max_age : 2) * TICKS_PER_SECOND);
    cut->age = age;
    cut->lag = age < LONGEST_LAG ? age : LONGEST_LAG;
    cut->spare = age / 20 < LONGEST_SPARE ? age / 20 : LONGEST_SPARE;
    cut->pool.age = age < LONGEST_KEPT ? age : LONGEST_KEPT;
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

bool is_cutter(PyObject *object)
{
    /* There are no subclasses, and each interpreter has a type of its own. */
    return Py_TYPE(object)->tp_dealloc == (destructor)Cutter_dealloc;
}

static PyMethodDef cutter_methods[] = {
    {"one", (PyCFunction)Cutter_one, METH_VARARGS,
     "one($self, kind, form, /)\n--\n\n"
     "Return the next id of *kind* in *form*, or None if there has to be a refill."},
    {"many", (PyCFunction)Cutter_many, METH_VARARGS,
     "many($self, kind, form, count, source=None, /)\n--\n\n"
     "Return up to *count* ids in a list, or as ``bytes`` all in one piece.\n\n"
     "There are none if there has to be a refill. With a *source* they are made of it, whatever UTC"
     " is."},
    {"raise_to", (PyCFunction)Cutter_raise_to, METH_O,
     "raise_to($self, end, /)\n--\n\nUse no place before *end*."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cutter_attributes[] = {
    {"source", (getter)Cutter_get_source, (setter)Cutter_set_source,
     "The Source of the next ids, None for none.", NULL},
    {"used", (getter)Cutter_get_used, NULL,
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
