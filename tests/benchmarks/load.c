/* Load for a Unix socket: connections with one request outstanding each, for a fixed time.
 *
 *     load PATH CONNECTIONS SECONDS keep|reconnect REQUEST REPLY
 *
 * REQUEST and REPLY are hexadecimal; every reply must begin with REPLY. With "keep" a connection is
 * kept for the next request, with "reconnect" it is closed and opened again. Prints "answered" once
 * there have been as many replies as there are connections, and at the end one line: replies
 * and seconds.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "measuring.h"

enum { MAX_CONNECTIONS = 4096, PATIENCE_MS = 5000 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static unsigned char request[MAX_BYTES], expected[MAX_BYTES];
static size_t request_size, expected_size;
static int epoll_fd;
static int fds[MAX_CONNECTIONS];

static void open_connection(int index)
{
    struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = (uint32_t)index};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &wanted))
        fail("epoll_ctl");
    fds[index] = fd;
}

static void ask(int index)
{
    if (send(fds[index], request, request_size, 0) != (ssize_t)request_size)
        fail("send");
}

static void read_reply(int index)
{
    unsigned char reply[4096];
    errno = 0;
    ssize_t size = recv(fds[index], reply, sizeof reply, 0);
    if (size < (ssize_t)expected_size || memcmp(reply, expected, expected_size))
        fail("reply");
}

int main(int argc, char **argv)
{
    struct epoll_event ready[64];
    if (argc != 7 || strlen(argv[1]) >= sizeof address.sun_path)
        fail("usage: load PATH CONNECTIONS SECONDS keep|reconnect REQUEST REPLY");
    strcpy(address.sun_path, argv[1]);
    int connections = atoi(argv[2]);
    double seconds = atof(argv[3]);
    int reconnect = !strcmp(argv[4], "reconnect");
    request_size = unhex(argv[5], request);
    expected_size = unhex(argv[6], expected);
    if (connections < 1 || connections > MAX_CONNECTIONS)
        fail("connections");
    signal(SIGPIPE, SIG_IGN);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < connections; i++)
        open_connection(i);
    int64_t begin = now(), end = begin + (int64_t)(seconds * 1e9), t = begin;
    for (int i = 0; i < connections; i++)
        ask(i);
    size_t count = 0;
    while (t < end) {
        errno = 0;
        int found = epoll_wait(epoll_fd, ready, 64, PATIENCE_MS);
        if (found <= 0)
            fail("no answer");
        for (int i = 0; i < found; i++) {
            int index = (int)ready[i].data.u32;
            read_reply(index);
            t = now();
            if (++count == (size_t)connections) {
                puts("answered");
                fflush(stdout);
            }
            if (reconnect) {
                close(fds[index]);
                open_connection(index);
            }
            ask(index);
        }
    }
    printf("%zu %.6f\n", count, (double)(t - begin) / 1e9);
    return 0;
}
