/* The bits and the texts of ids, as uuidd/core/ids lays them out. Nothing here knows of Python. */

#ifndef UUIDD_IDS_H
#define UUIDD_IDS_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UNIX_EPOCH INT64_C(0x01B21DD213814000)
#define TICKS_PER_MS 10000
#define TICKS_PER_SECOND 10000000
#define KSUID_EPOCH INT64_C(1400000000)
#define SLOT_BITS 12

#define KINDS_IN_ORDER(each)                                                                       \
    each(V1, "v1") each(V4, "v4") each(V6, "v6") each(V7, "v7") each(SNOWFLAKE, "snowflake")       \
        each(FLAKE, "flake") each(ULID, "ulid") each(KSUID, "ksuid") each(PUSH_ID, "push_id")
#define NUMBER(kind, name) kind,
enum kind { KINDS_IN_ORDER(NUMBER) KINDS };

/* What an id says beside its time and its random bits (see Origin in places.py). The lane is -1 for
 * 8 more random bits. */
struct origin {
    int64_t node, clock_seq, worker, epoch, lane;
};

/* An id of at most 160 bits; the highest 32 are KSUID's alone. */
struct bits {
    uint32_t head;
    uint64_t high, low;
};

#define MOST_RANDOM 16
#define MOST_BYTES 20
#define MOST_TEXT 36

static inline uint64_t read_big_endian(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, 8);
    return be64toh(value);
}

static inline void write_big_endian(uint8_t *bytes, uint64_t value)
{
    value = htobe64(value);
    memcpy(bytes, &value, 8);
}

/* The bytes of an id, and the random bytes that it takes, without a lane and with one. Its random bits
 * are the lowest bits of these, read as one number with the highest byte first; those of a v4 are all
 * but the six that are fixed. */
static const struct {
    uint8_t bytes, random, laned;
} SIZES[KINDS] = {
    [V1] = {16, 0, 0},        [V4] = {16, 16, 16}, [V6] = {16, 0, 0},
    [V7] = {16, 8, 8},        [ULID] = {16, 9, 8}, [KSUID] = {20, 13, 12},
    [SNOWFLAKE] = {8, 0, 0},  [FLAKE] = {16, 0, 0}, [PUSH_ID] = {16, 8, 8},
};

static inline size_t random_size(enum kind kind, int64_t lane)
{
    return lane < 0 ? SIZES[kind].random : SIZES[kind].laned;
}

/* The id of a place: a tick or, for Snowflakes, a slot counted from 1970. channel.py has checked that
 * the time fits, read_source in cutter.c the other fields. */
static inline struct bits id_bits(enum kind kind, int64_t place, const struct origin *origin,
                                  const uint8_t *random)
{
    struct bits id = {0, 0, 0};
    uint64_t tick = (uint64_t)place, since = tick - (uint64_t)UNIX_EPOCH;
    uint64_t lane = (uint64_t)origin->lane, ms, rest, more;

    switch (kind) {
    case V1:
    case V6:
        id.high = kind == V1 ? tick << 32 | (tick >> 32 & 0xFFFF) << 16 | 0x1000 | tick >> 48
                             : tick >> 12 << 16 | 0x6000 | (tick & 0xFFF);
        id.low = UINT64_C(2) << 62 | (uint64_t)origin->clock_seq << 48 | (uint64_t)origin->node;
        break;
    case V4:
        id.high = (read_big_endian(random) & ~UINT64_C(0xF000)) | 0x4000;
        id.low = read_big_endian(random + 8) << 2 >> 2 | UINT64_C(2) << 62;
        break;
    case V7:
        ms = since / TICKS_PER_MS, rest = since % TICKS_PER_MS;
        id.high = ms << 16 | 0x7000 | rest >> 2;
        id.low = read_big_endian(random) << 4 >> 4;
        if (origin->lane >= 0)
            id.low = id.low << 12 >> 12 | lane << 52;
        id.low |= UINT64_C(2) << 62 | (rest & 3) << 60;
        break;
    case ULID:
        ms = since / TICKS_PER_MS, rest = since % TICKS_PER_MS;
        more = origin->lane < 0 ? (uint64_t)(random[0] & 3) : lane >> 6;
        id.high = ms << 16 | rest << 2 | more;
        id.low = origin->lane < 0 ? read_big_endian(random + 1)
                                  : lane << 58 | read_big_endian(random) << 6 >> 6;
        break;
    case KSUID:
        id.head = (uint32_t)(since / TICKS_PER_SECOND - (uint64_t)KSUID_EPOCH);
        rest = since % TICKS_PER_SECOND;
        if (origin->lane < 0)
            lane = *random++;
        id.high = rest << 40 | lane << 32 | read_big_endian(random) >> 32;
        id.low = read_big_endian(random + 4);
        break;
    case PUSH_ID:
        ms = since / TICKS_PER_MS, rest = since % TICKS_PER_MS;
        id.high = ms << 8 | rest >> 6;
        id.low = read_big_endian(random) << 6 >> 6;
        if (origin->lane >= 0)
            id.low = id.low << 14 >> 14 | lane << 50;
        id.low |= rest << 58;
        break;
    case FLAKE:
        id.high = since / TICKS_PER_MS;
        id.low = (uint64_t)origin->node << 16 | since % TICKS_PER_MS;
        break;
    default: /* SNOWFLAKE */
        ms = (uint64_t)(place >> SLOT_BITS) - (uint64_t)origin->epoch;
        id.low = ms << 22 | (uint64_t)origin->worker << SLOT_BITS | (tick & ((1 << SLOT_BITS) - 1));
    }
    return id;
}

static inline void write_bytes(enum kind kind, struct bits id, uint8_t *bytes)
{
    if (kind == KSUID) {
        write_big_endian(bytes, (uint64_t)id.head << 32 | id.high >> 32);
        bytes += 4;
    }
    if (kind != SNOWFLAKE) {
        write_big_endian(bytes, id.high);
        bytes += 8;
    }
    write_big_endian(bytes, id.low);
}

/* Writes eight hex digits. All are computed at once in the bytes of one word: a table would have to
 * be fetched from memory when the processor has not used it for a while. */
static inline void write_hex(char *text, uint32_t value)
{
    uint64_t nibbles = value, over, ones = UINT64_C(0x0101010101010101);
    nibbles = (nibbles << 16 | nibbles) & UINT64_C(0x0000FFFF0000FFFF);
    nibbles = (nibbles << 8 | nibbles) & UINT64_C(0x00FF00FF00FF00FF);
    nibbles = (nibbles << 4 | nibbles) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    /* 1 in each byte whose digit is a letter. */
    over = (nibbles + 6 * ones) >> 4 & ones;
    write_big_endian((uint8_t *)text, nibbles + '0' * ones + ('a' - '9' - 1) * over);
}

static inline void write_uuid(struct bits id, char *text)
{
    write_hex(text, (uint32_t)(id.high >> 32));
    write_hex(text + 9, (uint32_t)id.high);
    write_hex(text + 19, (uint32_t)(id.low >> 32));
    write_hex(text + 28, (uint32_t)id.low);
    /* A hyphen comes between the fourth and the fifth digit of these. */
    memmove(text + 14, text + 13, 4);
    memmove(text + 24, text + 23, 4);
    text[8] = text[13] = text[18] = text[23] = '-';
}

static const char CROCKFORD[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
static const char PUSH[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
static const char BASE62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* Writes the lowest bits of an id in digits of some bits each. */
static inline void write_digits(struct bits id, char *text, int count, int width,
                                const char *alphabet)
{
    while (count--) {
        text[count] = alphabet[id.low & ((UINT64_C(1) << width) - 1)];
        id.low = id.low >> width | id.high << (64 - width);
        id.high >>= width;
    }
}

#define BASE62_DIGITS 30

/* Writes 30 digits of base 62. A long number is divided by 62**5 in limbs of 32 bits, so that the
 * compiler can multiply instead; the remainders are five digits each. */
static inline void write_base62(struct bits id, char *text)
{
    uint32_t limbs[5] = {id.head, (uint32_t)(id.high >> 32), (uint32_t)id.high,
                         (uint32_t)(id.low >> 32), (uint32_t)id.low};
    int first = 0;
    for (int chunk = 5; chunk >= 0; chunk--) {
        uint64_t rest = 0;
        for (int at = first; at < 5; at++) {
            rest = rest << 32 | limbs[at];
            limbs[at] = (uint32_t)(rest / 916132832);
            rest %= 916132832;
        }
        while (first < 5 && !limbs[first])
            first++;
        uint32_t high = (uint32_t)rest / 3844, low = (uint32_t)rest % 3844;
        char *at = text + 5 * chunk;
        at[0] = BASE62[high / 3844];
        at[1] = BASE62[high % 3844 / 62];
        at[2] = BASE62[high % 62];
        at[3] = BASE62[low / 62];
        at[4] = BASE62[low % 62];
    }
}

/* Writes the text of an id into MOST_TEXT characters; returns how many it took. */
static inline size_t write_text(enum kind kind, struct bits id, char *text)
{
    char digits[BASE62_DIGITS];
    size_t at = 0;
    switch (kind) {
    case ULID:
        write_digits(id, text, 26, 5, CROCKFORD);
        return 26;
    case PUSH_ID:
        write_digits(id, text, 20, 6, PUSH);
        return 20;
    case KSUID:
        write_base62(id, digits);
        memcpy(text, digits + BASE62_DIGITS - 27, 27);
        return 27;
    case FLAKE:
        write_base62(id, digits);
        while (at < BASE62_DIGITS - 1 && digits[at] == '0')
            at++;
        memcpy(text, digits + at, BASE62_DIGITS - at);
        return BASE62_DIGITS - at;
    case SNOWFLAKE: {
        char *end = text + MOST_TEXT, *begin = end;
        do {
            *--begin = (char)('0' + id.low % 10);
            id.low /= 10;
        } while (id.low);
        memmove(text, begin, (size_t)(end - begin));
        return (size_t)(end - begin);
    }
    default:
        write_uuid(id, text);
        return 36;
    }
}

#endif
