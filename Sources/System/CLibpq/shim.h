// libpq, with the arrays of a statement's values made from one run of bytes.
#pragma once
#include <poll.h>
#include <postgresql/libpq-fe.h>

// How many values a statement may have.
enum { clibpq_values_maximum = 64 };

// Sends a prepared statement with values that lie one behind the other in `bytes`; a length below 0 is NULL. All values
// are binary, and so is what comes back. libpq copies the bytes before it returns.
static inline int clibpq_send_prepared(PGconn *connection, const char *name, int count, const void *bytes,
                                       const int *lengths) {
  const char *values[clibpq_values_maximum];
  int sizes[clibpq_values_maximum], formats[clibpq_values_maximum];
  const char *next = bytes ? (const char *)bytes : "";
  if (count > clibpq_values_maximum) return 0;
  for (int index = 0; index < count; index++) {
    values[index] = lengths[index] < 0 ? 0 : next;
    sizes[index] = lengths[index] < 0 ? 0 : lengths[index];
    formats[index] = 1;
    next += sizes[index];
  }
  return PQsendQueryPrepared(connection, name, count, values, sizes, formats, 1);
}

// Starts to connect as `info` says. What stands before it holds where `info` says nothing, what stands behind it always.
// `timeout` is in seconds, for each address of each host.
static inline PGconn *clibpq_start(const char *info, const char *timeout) {
  const char *const names[] = {"fallback_application_name", "gssencmode", "dbname", "client_encoding",
                               "connect_timeout", 0};
  const char *const values[] = {"siwa", "disable", info, "UTF8", timeout, 0};
  return PQconnectStartParams(names, values, 1);
}

// Goes on until the connection stands or has failed; blocks. PQconnectPoll leads past hosts that refuse, but knows no
// connect_timeout. PQreset does, and begins anew: so where an address is silent, it does the rest.
static inline void clibpq_complete(PGconn *connection, int milliseconds) {
  PostgresPollingStatusType status = PQstatus(connection) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
    struct pollfd query = {PQsocket(connection), status == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0};
    if (poll(&query, 1, milliseconds) < 1) {
      PQreset(connection);
      return;
    }
    status = PQconnectPoll(connection);
  }
}

// Whether OpenSSL has read more from the socket than libpq took: the socket does not become readable for that.
extern int SSL_pending(const void *ssl);
static inline int clibpq_has_pending(PGconn *connection) {
  void *ssl = PQsslInUse(connection) ? PQsslStruct(connection, "OpenSSL") : 0;
  return ssl && SSL_pending(ssl) > 0;
}

// The identifiers of the types whose values are read and bound, as pg_type.dat of PostgreSQL has them.
enum {
  clibpq_bool = 16,
  clibpq_bytea = 17,
  clibpq_name = 19,
  clibpq_int8 = 20,
  clibpq_int2 = 21,
  clibpq_int4 = 23,
  clibpq_text = 25,
  clibpq_varchar = 1043,
};

// The fields of an error, which are characters.
enum {
  clibpq_severity = PG_DIAG_SEVERITY_NONLOCALIZED,
  clibpq_sqlstate = PG_DIAG_SQLSTATE,
  clibpq_message = PG_DIAG_MESSAGE_PRIMARY,
  clibpq_schema = PG_DIAG_SCHEMA_NAME,
  clibpq_table = PG_DIAG_TABLE_NAME,
  clibpq_column = PG_DIAG_COLUMN_NAME,
  clibpq_constraint = PG_DIAG_CONSTRAINT_NAME,
  clibpq_function = PG_DIAG_SOURCE_FUNCTION,
};
