// SQLite, with what does not come through: a variadic call, and a constant that is a cast.
#pragma once
#include <sqlite3.h>
#include <stdbool.h>

// SQLite copies the bytes before it returns where it is told to; otherwise they have to stay where they are until nothing is
// bound any more. No bytes are not NULL: a null pointer would bind that.
static inline int csqlite_bind_text(
    sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 count, bool copies) {
  return sqlite3_bind_text64(
      statement, index, text ? text : "", count, copies ? SQLITE_TRANSIENT : SQLITE_STATIC, SQLITE_UTF8);
}

static inline int csqlite_bind_bytes(
    sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count, bool copies) {
  return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", count, copies ? SQLITE_TRANSIENT : SQLITE_STATIC);
}

// Every allocation would take a lock, for statistics that nobody reads. Before anything else is called.
static inline void csqlite_count_no_memory(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

// The present value of an option that is on or off; -1 where it cannot be asked for.
static inline int csqlite_configured(sqlite3 *database, int option) {
  int value = -1;
  return sqlite3_db_config(database, option, -1, &value) == SQLITE_OK ? value : -1;
}

static inline int csqlite_configure(sqlite3 *database, int option, int value) {
  return sqlite3_db_config(database, option, value, (int *)0);
}
