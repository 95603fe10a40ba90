/* One request at a time over one Unix connection, with nothing but blocking calls.
 *
 *     roundtrip ask PATH SECONDS REQUEST REPLY PERCENTILE...
 *     roundtrip echo SIZE REPLY
 *
 * "ask" prints one line: how many round trips, then the nanoseconds of each percentile asked for.
 * REQUEST and REPLY are hexadecimal; every reply must begin with REPLY. "echo" answers every SIZE
 * bytes with REPLY, on the listening socket that is its standard input.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "measuring.h"

static uint32_t latencies[MAX_LATENCIES];

static void take_whole(int fd, unsigned char *bytes, size_t size)
{
    for (size_t had = 0; had < size;) {
        ssize_t more = recv(fd, bytes + had, size - had, 0);
        if (more <= 0)
            fail("reply");
        had += (size_t)more;
    }
}

static void ask(char **arguments, char **percentiles)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned char request[MAX_BYTES], expected[MAX_BYTES], reply[4096];
    if (strlen(arguments[0]) >= sizeof address.sun_path)
        fail("path");
    strcpy(address.sun_path, arguments[0]);
    int64_t length = (int64_t)(atof(arguments[1]) * 1e9);
    size_t request_size = unhex(arguments[2], request), least = unhex(arguments[3], expected);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    size_t count = 0;
    for (int64_t begin = now(), t = begin; t < begin + length && count < MAX_LATENCIES; count++) {
        int64_t sent = t;
        errno = 0;
        if (send(fd, request, request_size, 0) != (ssize_t)request_size)
            fail("send");
        ssize_t size = recv(fd, reply, sizeof reply, 0);
        if (size < (ssize_t)least || memcmp(reply, expected, least))
            fail("reply");
        t = now();
        latencies[count] = (uint32_t)(t - sent);
    }
    qsort(latencies, count, sizeof *latencies, by_size);
    printf("%zu", count);
    for (; *percentiles; percentiles++) {
        size_t index = (size_t)((double)count * atof(*percentiles) / 100);
        printf(" %u", latencies[index < count ? index : count - 1]);
    }
    printf("\n");
}

static void echo(size_t size, const char *text)
{
    unsigned char request[MAX_BYTES], reply[MAX_BYTES];
    size_t reply_size = unhex(text, reply);
    if (size < 1 || size > MAX_BYTES)
        fail("size");
    for (;;) {
        int fd = accept(0, NULL, NULL);
        if (fd < 0)
            fail("accept");
        for (ssize_t got; (got = recv(fd, request, size, 0)) > 0;) {
            take_whole(fd, request + got, size - (size_t)got);
            if (send(fd, reply, reply_size, 0) != (ssize_t)reply_size)
                break;
        }
        close(fd);
    }
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc > 6 && !strcmp(argv[1], "ask"))
        ask(argv + 2, argv + 6);
    else if (argc == 4 && !strcmp(argv[1], "echo"))
        echo((size_t)atoi(argv[2]), argv[3]);
    else
        fail("usage: roundtrip ask|echo ...");
    return 0;
}
