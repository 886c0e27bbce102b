/* Every size and time that is not a configuration key. DESIGN: bounds are named once, here or under `limits:`. */
#pragma once

/* Names and text. Sizes of arrays include the terminating NUL. */
#define HOST_TEXT_SIZE 256 /* RFC 1035 section 2.3.4: 253 octets of text; rounded up */
#define POLICY_NAME_SIZE 64
#define RULE_TEXT_SIZE 320 /* host, ports and resolves_to of one rule, as shown to people */
#define POLICY_MESSAGE_SIZE 512
#define ADDRESS_TEXT_SIZE 64 /* "[v6]:port", IPv4-mapped forms included */

/* Fixed descriptor numbers in every child. 0 and 1 are /dev/null, 2 is the log. */
#define CHILD_CHANNEL_FD 3
#define CHILD_COUNTERS_FD 4 /* memfd of this child's counters, workers only */
#define CHILD_LISTENER_FD_FIRST 16
#define CHILD_LISTENER_FD_END 64 /* numbers below it are never a session's: the filter of the worker rests on that */
#define LISTENERS_MAX (CHILD_LISTENER_FD_END - CHILD_LISTENER_FD_FIRST)
#define CHILD_DESCRIPTORS_MAX (1 << 20)            /* fs.nr_open; the filter tells sessions from listeners up to here */
#define CHILD_MEMORY_BYTES_MAX (UINT64_C(4) << 30) /* heap of a child; what it keeps is bounded far below */

/* Messages. What does not fit a SEQPACKET buffer waits in the sender's bounded queue. */
#define WORKER_CREDIT 2048 /* asks of one worker being answered, slow names and dials included */
#define CHANNEL_BUFFER_BYTES (4 << 20)
#define MESSAGES_PER_WAKEUP 64 /* a busy channel must not starve the others */

/* Resolving and dialling (RFC 8305 for the two delays). */
#define LOOKUP_ADDRESSES_MAX 16
#define DIAL_ADDRESSES_MAX 8
#define DIAL_ATTEMPT_DELAY_MS 250
#define RESOLUTION_DELAY_MS 50
#define DIALS_IN_FLIGHT_MAX 4096
#define DESCRIPTORS_RESERVED 64 /* kept for audit, replacement and reload */
#define NAMESERVERS_MAX 8
#define HOSTS_FILE_BYTES_MAX (1 << 20)
#define RESOLVER_CACHE_ENTRIES 4096
#define RESOLVER_TTL_MAX_S 3600
#define RESOLVER_TTL_NEGATIVE_MAX_S 60
#define RESOLVER_LOOKUPS_MAX 4096      /* lookups in flight and waiting; more are answered LOOKUP_OVERLOADED */
#define RESOLVER_CHANNELS 128          /* questions in flight: each lookup asks two, IPv6 and IPv4 */
#define RESOLVER_TRY_MS 1000           /* a question is sent again after it, doubled with each round of nameservers */
#define RESOLVER_TRIES 3               /* per nameserver */
#define RESOLVER_SOCKETS_AHEAD 8       /* connected UDP sockets kept ready per nameserver, each for one question */
#define RESOLVER_SOCKET_AGE_MS 30000   /* an unused one is closed then: routes and our own addresses change */
#define RESOLVER_PACKETS_PER_WAKEUP 16 /* read from one socket before the others get their turn */
#define RESOLVER_PACKETS_MAX 64        /* that one question reads from one socket: more is a flood of forgeries */
#define RESOLVER_RECORDS_MAX 1024      /* of one section of an answer that are looked at */
#define RESOLVER_ALIASES_MAX 16        /* length of a chain of CNAMEs */

/* Supervision. */
#define CHILD_READY_TIMEOUT_MS 10000
#define CHILD_BACKOFF_FIRST_MS 50
#define CHILD_BACKOFF_MAX_MS 5000
#define CHILD_STABLE_MS 10000 /* alive for so long: the back-off starts afresh */
#define CHILD_STALLED_MS 5000 /* a worker that does not read its messages for so long is replaced */
#define WORKERS_MAX 64

/* Relay. */
#define CAPTURE_BYTES_MAX 65536
#define HEAD_BYTES_MAX 32768
#define HEAD_FIELDS_MAX 128
#define RELAY_BUFFER_BYTES (64 * 1024)
#define RELAY_BULK_READ_BYTES (32 * 1024)
#define RELAY_PIPES 16
#define RELAY_PIPE_BYTES (512 * 1024)
#define RELAY_PIPE_BYTES_MIN (256 * 1024)

/* Worker: bounds of its own. */
#define ACCEPTS_PER_WAKEUP 16
#define ACCEPT_RETRY_MS 100 /* after a shortage that no end of a session of ours may lift */
#define DESCRIPTORS_PER_SESSION 2
#define WORKER_DESCRIPTORS_SPARE 16    /* of the worker's own limit, never given to sessions */
#define WORKER_OUTBOX_MAX 65536        /* messages to a parent that does not read; past it the worker ends */
#define WORKER_REPORTS_DEFERRED_MAX 32 /* ends of sessions that wait for a message that must go anyway */
#define WORKER_REPORT_DELAY_MS 10
#define HEAD_TIGHT_READ_BYTES 2048 /* reads while the worker's budget is used up */
#define RELAY_TIGHT_READ_BYTES (16 * 1024)
#define RELAY_BULK_READS 2 /* full reads in a row that make a direction bulk */
#define RELAY_SPLICES_PER_WAKEUP 4
#define RELAY_LAST_READS_MAX 16 /* of a peer that has reset: what it said before */
#define LINGER_MS 2000          /* a refused client may go on sending for so long and so much */
#define LINGER_BYTES_MAX (256 * 1024)
#define TUNNEL_LOOK_MS 1000 /* how often a side of a tunnel that is not watched now is looked at for a reset */

/* Configuration. */
#define CONFIG_FILE_BYTES_MAX (4 << 20)
#define CONFIG_DEPTH_MAX 16
#define CONFIG_ERRORS_SHOWN_MAX 100
#define LIST_FILE_ENTRIES_MAX 1000000
#define LIST_FILE_BYTES_MAX (64 << 20)
#define POLICIES_MAX 1024
#define POLICY_LISTS_MAX 64     /* list files of one allow or deny */
#define ENTRY_ITEMS_MAX 128     /* ports, or resolves_to, of one entry */
#define RULES_PER_HOST_MAX 1024 /* a look-up walks all rules for one name or network */
