/* What the files of the extension share. core.c says how it works. */

#ifndef UUIDD_CORE_H
#define UUIDD_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdbool.h>

#include "ids.h"

#if SIZEOF_VOID_P < 8
#error "the extension is for machines with 64 bits"
#endif

enum form { AS_UUID, AS_TEXT, AS_INT, AS_BYTES, FORMS };

#define load(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define load_acquire(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define store(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)
#define store_release(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

/* Steps that read a word and change it. With the GIL no other thread comes between, so they need no
 * locked instruction of the processor: there are up to three in an id, and each takes some 8 ns. */
#ifdef Py_GIL_DISABLED

static inline bool replace(int64_t *place, int64_t was, int64_t now)
{
    return __atomic_compare_exchange_n(place, &was, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline int64_t take_next(int64_t *place)
{
    return __atomic_fetch_add(place, 1, __ATOMIC_RELAXED);
}

static inline bool begin_use(bool *used)
{
    return !__atomic_exchange_n(used, true, __ATOMIC_ACQUIRE);
}

#else

static inline bool replace(int64_t *place, int64_t was, int64_t now)
{
    bool same = load(place) == was;
    if (same)
        store(place, now);
    return same;
}

static inline int64_t take_next(int64_t *place)
{
    int64_t taken = load(place);
    store(place, taken + 1);
    return taken;
}

static inline bool begin_use(bool *used)
{
    bool was = load(used);
    store(used, true);
    return !was;
}

#endif

/* Lets go of all in a list but the last one, which took the place of the others; -1 with an exception.
 * Their end may run Python code. */
static inline int drop_former(PyObject *list)
{
#ifdef Py_GIL_DISABLED
    /* Another thread may be using one of them, and a lock would let threads wait for each other. So
     * they stay as long as the list. */
    (void)list;
    return 0;
#else
    Py_ssize_t former = PyList_GET_SIZE(list) - 1;
    return former > 0 ? PyList_SetSlice(list, 0, former, NULL) : 0;
#endif
}

/* What the module keeps. *epochs* points to the word that says whether the machine was cloned, of the
 * page that the process was passed last, or to NULL. The list *watched* ends with that page. */
typedef struct {
    PyTypeObject *mark, *cutter;
    PyObject *urandom, *uuid_fields, *watched;
    const uint64_t **epochs;
} State;

State *state_of(PyTypeObject *type);

/* As PyObject_GetAttrString, whose names Python's cache of attributes would keep, each time. */
PyObject *attribute(PyObject *of, const char *name);

/* Returns which of the names it is; -1 with a ValueError. */
int kind_of(const char *name);
int form_of(const char *name);

/* --- mark.c */

typedef struct {
    PyObject_HEAD
    int64_t end;
} Mark;

/* Raises the mark to end, unless it is there already; returns what it was. */
static inline int64_t mark_raise(Mark *mark, int64_t end)
{
    int64_t was;
    do {
        was = load(&mark->end);
    } while (was < end && !replace(&mark->end, was, end));
    return was;
}

extern PyType_Spec mark_spec;

/* --- objects.c */

/* How a uuid.UUID is made: by writing its two attributes where the type has them or, if int_at is 0,
 * by calling the type with *names* of arguments. */
struct uuids {
    PyTypeObject *type;
    PyObject *safe, *unknown, *names;
    Py_ssize_t int_at, safe_at;
};

void find_slots(struct uuids *uuids);
PyObject *new_uuid(const struct uuids *uuids);

/* Returns an id in a form. A UUID whose type need not be called is the object uuid, which has been
 * allocated before; this function takes its reference. */
PyObject *id_object(const struct uuids *uuids, enum kind kind, enum form form,
                    const struct bits *id, bool safe, PyObject *uuid);

/* Reads an Origin (layouts.py), which has to have what ids of the kind need; -1 with an exception. */
int read_origin(enum kind kind, PyObject *value, struct origin *origin);

/* --- cutting.c */

/* The word of a page that holds the horizon (leases.py). */
#define HORIZON_AT 1

/* How long random bytes are kept, in nanoseconds, and how many are read at first, and at most. */
#define LONGEST_KEPT 1000000
#define FIRST_RANDOM 128
#define MOST_RANDOM_KEPT 1024

/* How many ticks an id may lag behind UTC, if it follows another. */
#define LONGEST_LAG 50

/* The lane that is leased: *token* is at *at* in the *words* of its page. Its ticks are at *begin* or
 * later, and before *end* and *tell_at*. */
struct lane {
    const uint64_t *words;
    int64_t at, begin, end, tell_at;
    uint64_t token;
    struct origin origin;
};

/* The places that are lent, *first* to *end*, while UTC is in the span from *begin* to *deadline*,
 * the mark is at *marked*, and the page's epoch is *epoch*. */
struct run {
    int64_t first, end, marked, safe;
    double begin;
    double *deadline;
    const uint64_t *epochs;
    uint64_t epoch;
    struct origin origin;
};

/* Random bytes that were read at *begin*, in nanoseconds of UTC, and in *epoch* of the page of
 * *epochs*: the first *left* ones are left of about *size*. */
struct pool {
    uint8_t *bytes;
    size_t size, left;
    int64_t begin, age;
    const uint64_t *epochs;
    uint64_t epoch;
    bool busy;
};

typedef struct {
    PyObject_HEAD
    enum kind kind;
    PyObject *memory;
    const uint64_t *alive; /* The first word of *memory*. */
    Mark *used, *latest;
    /* *clock* is NULL for the system's. The lists *held* and *lent* end with what *lane* and *run*
     * point into. */
    PyObject *clock, *random, *held, *lent;
    bool system_random;
    /* How many random bytes are taken for an id, and how many of them do not count if it has a lane. */
    size_t random_size, random_spare;
    struct uuids uuids;
    const uint64_t **epochs; /* That of the State. */
    uint64_t changes;
    int64_t floor, lag;
    struct lane lane;
    struct run run;
    struct pool pool;
} Cutter;

/* Returns the next id; NULL without an exception if Python has to refill. */
PyObject *cut_one(Cutter *cut, enum form form);

/* Fills bytes with random ones; -1 with an exception. */
int read_random(Cutter *cut, uint8_t *bytes, size_t size);

/* Drops the random bytes that were read ahead. */
void drop_random(Cutter *cut);

/* --- refill.c */

PyObject *Cutter_hold(Cutter *cut, PyObject *args);
PyObject *Cutter_lend(Cutter *cut, PyObject *args);
PyObject *Cutter_take_back(Cutter *cut, PyObject *none);

/* Returns the word of a memoryview of one, which is added to a list, unless it was *known*; NULL with
 * an exception. */
const uint64_t *epochs_of(PyObject *value, const uint64_t *known, PyObject *list);

/* --- many.c, cutter.c, draw.c */

PyObject *Cutter_many(Cutter *cut, PyObject *args);
PyObject *Cutter_packed(Cutter *cut, PyObject *args);

extern PyType_Spec cutter_spec, draw_spec, ids_spec;

PyObject *shortcut(PyObject *module, PyObject *args);

#endif
