#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "parent/client.h"

static struct config_listener listeners[2];
static struct config config = {.egress = listeners, .egress_count = 1};

static struct endpoint local_of(int fd)
{
  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  struct endpoint local;
  getsockname(fd, (struct sockaddr *)&storage, &length);
  cr_assert_eq(endpoint_from_sockaddr((struct sockaddr *)&storage, &local), 0);
  return local;
}

static int listen_on(const char *address)
{
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct endpoint endpoint = {0};
  cr_assert_eq(address_parse(address, &endpoint.address), 0);
  struct sockaddr_storage storage;
  socklen_t length = endpoint_to_sockaddr(&endpoint, &storage);
  cr_assert_eq(bind(fd, (struct sockaddr *)&storage, length), 0);
  cr_assert_eq(listen(fd, 8), 0);
  return fd;
}

/* A connection to `listener`: the client's end, and what the worker accepted. */
static void connect_to(int listener, int *ret_client, int *ret_accepted)
{
  struct endpoint to = local_of(listener);
  if (to.address.bytes[0] == 0)
    to.address.bytes[0] = 127, to.address.bytes[3] = 1;
  struct sockaddr_storage storage;
  socklen_t length = endpoint_to_sockaddr(&to, &storage);
  *ret_client = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(connect(*ret_client, (struct sockaddr *)&storage, length), 0);
  *ret_accepted = accept(listener, NULL, NULL);
  cr_assert_geq(*ret_accepted, 0);
}

static enum client_result read_client(int fd, struct client *ret)
{
  const char *why = NULL;
  enum client_result result = client_read(fd, &config, ret, &why);
  cr_expect_eq(why != NULL, result == CLIENT_FOREIGN);
  return result;
}

Test(client, is_read_from_its_descriptor)
{
  int listener = listen_on("127.0.0.1"), end, accepted;
  listeners[0].endpoint = local_of(listener);
  connect_to(listener, &end, &accepted);
  struct client client;
  cr_expect_eq(read_client(accepted, &client), CLIENT_READ);
  struct endpoint peer = local_of(end);
  cr_expect_eq(client.listener, &listeners[0]);
  cr_expect(address_equal(&client.peer.address, &peer.address));
  cr_expect_eq(client.peer.port, peer.port);
}

Test(client, a_wildcard_listener_yields_to_the_exact_one)
{
  int wildcard = listen_on("0.0.0.0"), end, accepted;
  config.egress_count = 2;
  listeners[0].endpoint = local_of(wildcard);
  listeners[1].endpoint = listeners[0].endpoint;
  listeners[1].endpoint.address.bytes[0] = 127;
  listeners[1].endpoint.address.bytes[3] = 2;
  connect_to(wildcard, &end, &accepted);
  struct client client;
  cr_expect_eq(read_client(accepted, &client), CLIENT_READ);
  cr_expect_eq(client.listener, &listeners[0]);
  listeners[1].endpoint.address.bytes[3] = 1;
  cr_expect_eq(read_client(accepted, &client), CLIENT_READ);
  cr_expect_eq(client.listener, &listeners[1]);
}

Test(client, that_reset_is_gone_not_foreign)
{
  int listener = listen_on("127.0.0.1"), end, accepted;
  listeners[0].endpoint = local_of(listener);
  connect_to(listener, &end, &accepted);
  struct linger reset = {1, 0};
  setsockopt(end, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(end);
  struct client client;
  cr_expect_eq(read_client(accepted, &client), CLIENT_GONE);
  cr_expect_eq(client.listener, &listeners[0]);
}

Test(client, whatever_else_is_foreign)
{
  int listener = listen_on("127.0.0.1"), other = listen_on("127.0.0.1"), end, accepted, other_end, other_accepted;
  listeners[0].endpoint = local_of(listener);
  connect_to(listener, &end, &accepted);
  connect_to(other, &other_end, &other_accepted);
  int pair[2], pipes[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  cr_assert_eq(pipe(pipes), 0);
  int udp = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_storage storage;
  socklen_t length = endpoint_to_sockaddr(&listeners[0].endpoint, &storage);
  cr_assert_eq(bind(udp, (struct sockaddr *)&storage, length), 0); /* the listener's own address, but UDP */
  int unconnected = socket(AF_INET, SOCK_STREAM, 0);
  const struct {
    const char *what;
    int fd;
  } rows[] = {
    {"the listener itself", listener},
    {"the client's own end", end},
    {"a connection to a foreign listener", other_accepted},
    {"a socket connected elsewhere", other_end},
    {"a Unix socket", pair[0]},
    {"a pipe", pipes[0]},
    {"a UDP socket at the listener's address", udp},
    {"an unconnected socket", unconnected},
    {"a file", open("/dev/null", O_RDONLY)},
  };
  struct client client;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    cr_expect_eq(read_client(rows[i].fd, &client), CLIENT_FOREIGN, "%s", rows[i].what);
}
