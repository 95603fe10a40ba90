/* One id of a Cutter: the way that nearly all ids take. */

#include "core.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

/* How often the clock is read for an id, if it does not move on. */
#define MOST_READINGS 64

/* FAILED is with an exception; after AGAIN the clock is read once more. */
enum found { NONE, AGAIN, FOUND, FAILED };

static enum found read_clock(Cutter *cut, int64_t *nanoseconds)
{
    if (!cut->clock) {
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
    /* Of a clock that a test has set to before 1677 or after 2262: Python makes these ids. */
    return overflow ? NONE : FOUND;
}

static int64_t tick_of(int64_t nanoseconds)
{
    int64_t ticks = nanoseconds / 100;
    return UNIX_EPOCH + ticks - (nanoseconds % 100 < 0);
}

int read_random(Cutter *cut, uint8_t *bytes, size_t size)
{
    size_t have = 0;
    while (cut->system_random && have < size) {
        ssize_t got = getrandom(bytes + have, size - have, GRND_NONBLOCK);
        if (got < 0 && errno != EINTR)
            break;
        have += got < 0 ? 0 : (size_t)got;
    }
    if (have == size)
        return 0;
    /* Not the system's, or the system has none yet: Python's function waits without the GIL. */
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

void drop_random(Cutter *cut)
{
    /* As if UTC had been set back since. */
    store(&cut->pool.begin, INT64_MAX);
}

/* Takes the random bytes of one id. Returns 1 if the pool had none, so that they took some time or
 * even Python code, 0 if it had, -1 for an exception. */
static int take_random(Cutter *cut, int64_t now, uint8_t *bytes, size_t size)
{
    struct pool *pool = &cut->pool;
    if (!begin_use(&pool->busy))
        return read_random(cut, bytes, size) < 0 ? -1 : 1;
    int read = 0;
    int64_t begin = load(&pool->begin);
    const uint64_t *epochs = load_acquire(cut->epochs);
    uint64_t epoch = epochs ? load_acquire(epochs) : 0;
    bool old = now < begin || now - begin >= pool->age || epoch != pool->epoch
               || epochs != pool->epochs;
    if (old || pool->left < size) {
        memset(pool->bytes, 0, pool->left);
        pool->left = 0;
        pool->size = old ? FIRST_RANDOM : 2 * pool->size;
        if (pool->size > MOST_RANDOM_KEPT)
            pool->size = MOST_RANDOM_KEPT;
        size_t wanted = pool->age ? pool->size - pool->size % size : size;
        read = read_random(cut, pool->bytes, wanted) < 0 ? -1 : 1;
        if (read > 0) {
            pool->left = wanted;
            pool->epochs = epochs;
            pool->epoch = epoch;
            store(&pool->begin, now);
        }
    }
    if (read >= 0) {
        /* From the end, so what lies behind has been used before, and may be wiped once more. */
        pool->left -= size;
        memcpy(bytes, pool->bytes + pool->left, MOST_RANDOM);
        memset(pool->bytes + pool->left, 0, MOST_RANDOM);
    }
    store_release(&pool->busy, false);
    return read;
}

static inline void load_origin(const struct origin *place, struct origin *origin)
{
    origin->node = load(&place->node);
    origin->clock_seq = load(&place->clock_seq);
    origin->worker = load(&place->worker);
    origin->epoch = load(&place->epoch);
    origin->lane = load(&place->lane);
}

struct cut {
    int64_t place;
    bool safe;
    struct origin origin;
};

/* Takes the next place of the run, if it is valid at UTC. */
static enum found cut_run(Cutter *cut, int64_t now, struct cut *made)
{
    struct run *run = &cut->run;
    int64_t end = load_acquire(&run->end);
    if (load(&run->first) >= end || load(&cut->used->end) != load(&run->marked))
        return NONE;
    /* As time.time() computes it. */
    double seconds = (double)now / 1e9, begin, deadline;
    __atomic_load(&run->begin, &begin, __ATOMIC_RELAXED);
    __atomic_load(load(&run->deadline), &deadline, __ATOMIC_RELAXED);
    if (!(begin <= seconds && seconds < deadline))
        return NONE;
    made->place = take_next(&run->first);
    made->safe = load(&run->safe);
    load_origin(&run->origin, &made->origin);
    if (load_acquire(load(&run->epochs)) != load(&run->epoch))
        return NONE;
    return made->place < end ? FOUND : AGAIN;
}

/* Reserves the tick of now in the lane; AGAIN if it is used, and the next one is not. */
static enum found cut_lane(Cutter *cut, int64_t now, struct cut *made)
{
    struct lane *lane = &cut->lane;
    const uint64_t *words = load_acquire(&lane->words);
    if (!words)
        return NONE;
    int64_t horizon = (int64_t)load_acquire(words + HORIZON_AT);
    uint64_t token = load_acquire(words + load(&lane->at));
    if (token != load(&lane->token)) {
        drop_random(cut);
        return NONE;
    }
    if (now >= horizon || now >= load(&lane->tell_at) || now >= load(&lane->end)
        || now < load(&lane->begin) || now < load(&cut->floor))
        return NONE;
    /* The tick itself may be used by another kind. */
    if (cut->latest && load(&cut->latest->end) > now + 1)
        return NONE;
    int64_t used = load(&cut->used->end);
    if (used > now)
        return used == now + 1 ? AGAIN : NONE;
    int64_t tick = now;
    if (now - used < cut->lag && used >= load(&lane->begin) && used >= load(&cut->floor))
        tick = used;
    if (!replace(&cut->used->end, used, tick + 1))
        return AGAIN;
    if (cut->latest)
        mark_raise(cut->latest, tick + 1);
    made->place = tick;
    made->safe = true;
    load_origin(&lane->origin, &made->origin);
    return FOUND;
}

static enum found cut_place(Cutter *cut, struct cut *made, uint8_t *random)
{
    bool drawn = !cut->random_size;
    for (int reading = 0; reading < MOST_READINGS; reading++) {
        int64_t now;
        enum found found = read_clock(cut, &now);
        if (found != FOUND)
            return found;
        if (!drawn) {
            int read = take_random(cut, now, random, cut->random_size);
            if (read < 0)
                return FAILED;
            drawn = true;
            if (read)
                continue;
        }
        if (cut->kind == V4)
            return FOUND;
        uint64_t changes = load_acquire(&cut->changes);
        if (changes & 1)
            continue;
        found = cut_run(cut, now, made);
        if (found == NONE)
            found = cut_lane(cut, tick_of(now), made);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (load(&cut->changes) != changes || found == AGAIN)
            continue;
        return found;
    }
    return NONE;
}

PyObject *cut_one(Cutter *cut, enum form form)
{
    PyObject *uuid = NULL, *made = NULL;
    uint8_t random[MOST_RANDOM];
    struct cut place = {.origin.lane = -1};

    if (!load(cut->alive))
        return NULL;
    if (form == AS_UUID && cut->uuids.int_at && !(uuid = new_uuid(&cut->uuids)))
        return NULL;
    if (cut_place(cut, &place, random) == FOUND) {
        size_t spare = place.origin.lane < 0 ? 0 : cut->random_spare;
        struct bits id = id_bits(cut->kind, place.place, &place.origin, random + spare);
        made = id_object(&cut->uuids, cut->kind, form, &id, place.safe, uuid);
    } else
        Py_XDECREF(uuid);
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    if (made && !load(cut->alive))
        Py_CLEAR(made);
    return made;
}
