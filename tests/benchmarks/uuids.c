/* libuuid's own loop: processes that call uuid_generate_time_safe as fast as they can.
 *
 *     uuids PROCESSES COUNT
 *
 * Each process makes COUNT. libuuid must report each id as safe, and no id may come twice: that is
 * checked when the time has been taken. Prints one line: ids a second in all, the node of the last.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "measuring.h"

enum { MAX_PROCESSES = 64, PATIENCE_SECONDS = 60 };

/* Ids of one clock sequence and node, with ticks that follow each other. */
struct run {
    unsigned char space[8];
    uint64_t first, last;
};

static int compare(const void *one, const void *other)
{
    const struct run *a = one, *b = other;
    int spaces = memcmp(a->space, b->space, sizeof a->space);
    return spaces ? spaces : (a->first > b->first) - (a->first < b->first);
}

static struct run run_of(const unsigned char *id)
{
    struct run run = {.first = 0};
    static const int order[] = {6, 7, 4, 5, 0, 1, 2, 3};
    for (int i = 0; i < 8; i++)
        run.first = run.first << 8 | (i ? id[order[i]] : id[order[i]] & 0x0f);
    run.last = run.first;
    memcpy(run.space, id + 8, sizeof run.space);
    return run;
}

static void no_id_twice(uuid_t *ids, size_t count)
{
    size_t found = 0, room = 1 << 16;
    struct run *runs = malloc(room * sizeof *runs);
    for (size_t i = 0; i < count && runs; i++) {
        struct run next = run_of(ids[i]);
        struct run *open = found ? &runs[found - 1] : NULL;
        if (open && next.first == open->last + 1 && !memcmp(open->space, next.space, 8)) {
            open->last = next.first;
            continue;
        }
        if (found == room)
            runs = realloc(runs, (room *= 2) * sizeof *runs);
        if (runs)
            runs[found++] = next;
    }
    if (!runs)
        fail("memory");
    qsort(runs, found, sizeof *runs, compare);
    errno = 0;
    for (size_t i = 1; i < found; i++)
        if (!memcmp(runs[i].space, runs[i - 1].space, 8) && runs[i].first <= runs[i - 1].last)
            fail("an id came twice");
    free(runs);
}

/* Exit with 1 if one of them was not safe. */
static void make(uuid_t *ids, size_t count, int go)
{
    char byte;
    int unsafe = 0;
    alarm(PATIENCE_SECONDS);
    /* It returns 0 when the parent closes its end: now all begin. */
    if (read(go, &byte, 1))
        _exit(1);
    for (size_t i = 0; i < count; i++)
        unsafe |= uuid_generate_time_safe(ids[i]);
    _exit(unsafe ? 1 : 0);
}

int main(int argc, char **argv)
{
    int processes = argc == 3 ? atoi(argv[1]) : 0, go[2], failed = 0, status;
    long each = argc == 3 ? atol(argv[2]) : 0;
    if (processes < 1 || processes > MAX_PROCESSES || each < 1)
        fail("usage: uuids PROCESSES COUNT");
    size_t count = (size_t)processes * (size_t)each;
    /* Filled now, so that the time for finding memory is not measured. */
    uuid_t *ids = mmap(NULL, count * sizeof *ids, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (ids == MAP_FAILED || pipe(go))
        fail("memory or pipe");
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (!child) {
            close(go[1]);
            make(ids + (size_t)i * (size_t)each, (size_t)each, go[0]);
        }
    }
    usleep(20000);
    int64_t begin = now();
    close(go[1]);
    for (int i = 0; i < processes; i++)
        failed |= wait(&status) < 0 || status;
    double seconds = (double)(now() - begin) / 1e9;
    errno = 0;
    if (failed)
        fail("an id was not safe");
    no_id_twice(ids, count);
    printf("%.1f ", (double)count / seconds);
    for (int i = 10; i < 16; i++)
        printf("%02x", ids[count - 1][i]);
    printf("\n");
    return 0;
}
