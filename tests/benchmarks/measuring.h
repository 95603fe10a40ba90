/* What all the programs that measure need. */
#ifndef MEASURING_H
#define MEASURING_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_BYTES = 256, MAX_LATENCIES = 1 << 22 };

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "unexpected");
    exit(1);
}

static inline int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Read hexadecimal text into at most MAX_BYTES; returns how many. */
static inline size_t unhex(const char *text, unsigned char *bytes)
{
    size_t size = strlen(text) / 2;
    if (size > MAX_BYTES)
        fail("too many bytes");
    for (size_t i = 0; i < size; i++) {
        unsigned int byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            fail("no hexadecimal");
        bytes[i] = (unsigned char)byte;
    }
    return size;
}

static inline int by_size(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

#endif
