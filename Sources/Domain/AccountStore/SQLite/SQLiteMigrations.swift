import SQLite

/// The form of the database, as the steps that lead to it. A step that was ever released is never changed: a new form
/// gets a new step.
enum SQLiteMigrations {
  /// Marks the file as one of ours: `siwa` in ASCII.
  static let applicationID: Int64 = 0x7369_7761

  /// The steps, in their order: the first makes version 1.
  static let steps: [StaticString] = [first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth]

  /// The version from which on nothing waits to be announced in a table of its own.
  static let withoutAnnouncements: Int64 = 3

  /// The version that this program reads and writes.
  static var version: Int64 { Int64(steps.count) }

  /// The version of the database; nil where it is not one of ours, 0 where nothing is in it.
  static func version(of database: Database) throws(SQLiteError) -> Int64? {
    let application: Int64? = try database.prepare("PRAGMA application_id").first { row throws(SQLiteError) in
      try row.value(0)
    }
    if application == applicationID {
      return try database.prepare("PRAGMA user_version").first { row throws(SQLiteError) in try row.value(0) }
    }
    let tables: Int64? = try database.prepare("SELECT count(*) FROM sqlite_schema").first { row throws(SQLiteError) in
      try row.value(0)
    }
    return application == 0 && tables == 0 ? 0 : nil
  }

  /// All times are in milliseconds since 1970. A `hash` stands for an account (HMAC-SHA256 under `hash_key`); what is
  /// sealed is nonce, ciphertext and tag of AES-256-GCM.
  private static let first: StaticString = """
    PRAGMA application_id = 1936291681;
    PRAGMA user_version = 1;

    CREATE TABLE store_key (
      number INTEGER PRIMARY KEY CHECK (number = 1),
      master_key_id TEXT NOT NULL,
      hash_key BLOB NOT NULL,
      announcement_key BLOB NOT NULL
    ) STRICT;

    CREATE TABLE account (
      hash BLOB NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
      team TEXT NOT NULL,
      subject BLOB NOT NULL,
      master_key_id TEXT NOT NULL,
      data_key BLOB NOT NULL,
      signed_in_at INTEGER,
      own_revocation_at INTEGER
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE token (
      number INTEGER PRIMARY KEY,
      hash BLOB NOT NULL REFERENCES account ON DELETE CASCADE,
      fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
      kind TEXT NOT NULL CHECK (kind IN ('refresh', 'access')),
      client TEXT NOT NULL,
      issued_at INTEGER NOT NULL,
      value BLOB NOT NULL,
      UNIQUE (hash, client, kind, fingerprint)
    ) STRICT;

    CREATE TABLE relay (
      hash BLOB NOT NULL PRIMARY KEY REFERENCES account ON DELETE CASCADE,
      status TEXT NOT NULL CHECK (status IN ('enabled', 'disabled')),
      since INTEGER NOT NULL,
      is_private INTEGER NOT NULL CHECK (is_private IN (0, 1)),
      address BLOB
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE ledger (
      consumer TEXT NOT NULL,
      event_id TEXT NOT NULL,
      hash BLOB NOT NULL CHECK (length(hash) = 32),
      outcome TEXT NOT NULL,
      at INTEGER NOT NULL,
      topic TEXT NOT NULL,
      partition INTEGER NOT NULL,
      "offset" INTEGER NOT NULL,
      PRIMARY KEY (consumer, event_id)
    ) STRICT;

    CREATE TABLE fence (
      consumer TEXT NOT NULL,
      hash BLOB NOT NULL CHECK (length(hash) = 32),
      severity INTEGER NOT NULL,
      at INTEGER NOT NULL,
      tie INTEGER NOT NULL,
      PRIMARY KEY (consumer, hash, severity)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE erasure (
      hash BLOB NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
      at INTEGER NOT NULL,
      is_final INTEGER NOT NULL CHECK (is_final IN (0, 1)),
      signed_in_at INTEGER
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE ended_authorization (
      hash BLOB NOT NULL CHECK (length(hash) = 32),
      client TEXT NOT NULL,
      issued_up_to INTEGER NOT NULL,
      PRIMARY KEY (hash, client)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE attempt (
      consumer TEXT NOT NULL,
      event_id TEXT NOT NULL,
      count INTEGER NOT NULL CHECK (count > 0),
      first_at INTEGER NOT NULL,
      last_at INTEGER NOT NULL,
      cause TEXT NOT NULL,
      PRIMARY KEY (consumer, event_id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE announcement (
      number INTEGER PRIMARY KEY,
      consumer TEXT NOT NULL,
      partition INTEGER NOT NULL,
      records BLOB NOT NULL
    ) STRICT;

    CREATE TABLE announcement_number (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      last INTEGER NOT NULL
    ) STRICT;

    INSERT INTO announcement_number (only, last) VALUES (1, 0);

    CREATE TABLE erasure_step (
      number INTEGER PRIMARY KEY,
      event_id TEXT NOT NULL,
      target TEXT NOT NULL,
      hash BLOB NOT NULL CHECK (length(hash) = 32),
      state TEXT NOT NULL CHECK (state IN ('begun', 'erased', 'retained', 'failed', 'discarded')),
      before INTEGER,
      affected INTEGER,
      after INTEGER,
      detail TEXT NOT NULL,
      at INTEGER NOT NULL,
      UNIQUE (event_id, target)
    ) STRICT;

    CREATE INDEX open_erasure_step ON erasure_step (event_id, target) WHERE state IN ('begun', 'failed');
    """

  /// What we have revoked ourselves, of each app, and for longer than there is an account. The column in its place was
  /// never written.
  private static let second: StaticString = """
    PRAGMA user_version = 2;

    ALTER TABLE account DROP COLUMN own_revocation_at;

    CREATE TABLE own_revocation (
      hash BLOB NOT NULL CHECK (length(hash) = 32),
      client TEXT NOT NULL,
      at INTEGER NOT NULL,
      is_proven INTEGER NOT NULL CHECK (is_proven IN (0, 1)),
      PRIMARY KEY (hash, client)
    ) STRICT, WITHOUT ROWID;
    """

  /// What is announced is composed from the ledger; only how far it is is kept. What the ledger has from before, without a
  /// detail, is announced.
  private static let third: StaticString = """
    PRAGMA user_version = 3;

    DROP TABLE announcement;
    DROP TABLE announcement_number;
    ALTER TABLE store_key DROP COLUMN announcement_key;
    ALTER TABLE ledger ADD COLUMN detail TEXT;

    CREATE TABLE announced (
      consumer TEXT NOT NULL,
      topic TEXT NOT NULL,
      partition INTEGER NOT NULL,
      claim INTEGER NOT NULL CHECK (claim > 0),
      "offset" INTEGER NOT NULL,
      beyond TEXT NOT NULL,
      PRIMARY KEY (consumer, topic, partition)
    ) STRICT, WITHOUT ROWID;
    """

  /// The hashing key can be replaced: a row notes how many keys there were when its hash was made. Rows of a table that
  /// belong to one of `account` have that one's. Programs of the version before, which know the first key alone, would
  /// find no fence of who has moved to another one, and write steps under a former hash: without the tables `erasure` and
  /// `erasure_step` they do nothing at all.
  private static let fourth: StaticString = """
    PRAGMA user_version = 4;

    CREATE TABLE hash_key (
      number INTEGER PRIMARY KEY CHECK (number > 0),
      name TEXT CHECK ((name IS NULL) = (number = 1)),
      master_key_id TEXT NOT NULL,
      key BLOB NOT NULL,
      is_complete INTEGER NOT NULL CHECK (is_complete IN (0, 1))
    ) STRICT;

    INSERT INTO hash_key (number, master_key_id, key, is_complete) SELECT 1, master_key_id, hash_key, 1 FROM store_key;
    DROP TABLE store_key;

    ALTER TABLE erasure RENAME TO erasure_fence;
    ALTER TABLE erasure_step RENAME TO erasure_progress;

    ALTER TABLE account ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE fence ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE erasure_fence ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE ended_authorization ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE own_revocation ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE ledger ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE erasure_progress ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
    """

  /// A state of mail has the fence of the event that it is from in its own row: for most accounts there is no other, and
  /// both change together. The others stand in a table of their own still. Programs of the version before, which look
  /// there alone, find no tables `relay` and `fence`, without which they settle nothing, and say nothing about mail.
  private static let fifth: StaticString = """
    PRAGMA user_version = 5;

    ALTER TABLE fence RENAME TO event_fence;
    ALTER TABLE relay RENAME TO mail;
    ALTER TABLE mail ADD COLUMN fence_consumer TEXT;
    ALTER TABLE mail ADD COLUMN fence_severity INTEGER CHECK ((fence_severity IS NULL) = (fence_consumer IS NULL));
    ALTER TABLE mail ADD COLUMN fence_at INTEGER CHECK ((fence_at IS NULL) = (fence_consumer IS NULL));
    ALTER TABLE mail ADD COLUMN fence_tie INTEGER CHECK ((fence_tie IS NULL) = (fence_consumer IS NULL));
    """

  /// The exchanges of sign-ins' codes. What names an account here is its hash under the first key.
  private static let sixth: StaticString = """
    PRAGMA user_version = 6;

    CREATE TABLE code_exchange (
      request BLOB NOT NULL PRIMARY KEY CHECK (length(request) = 32),
      content BLOB NOT NULL CHECK (length(content) = 32),
      code BLOB NOT NULL UNIQUE CHECK (length(code) = 32),
      account BLOB NOT NULL CHECK (length(account) = 32),
      client TEXT NOT NULL,
      begun_at INTEGER NOT NULL,
      outcome TEXT NOT NULL CHECK (outcome IN ('begun', 'new', 'known', 'over', 'refused')),
      signed_in_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX code_exchange_begun_at ON code_exchange (begun_at);
    """

  /// Deletions that were asked for in an app, and events of our own that wait to be published. What names an account here
  /// is its hash under the first key.
  private static let seventh: StaticString = """
    PRAGMA user_version = 7;

    CREATE TABLE deletion (
      event_id TEXT NOT NULL PRIMARY KEY,
      account BLOB NOT NULL CHECK (length(account) = 32),
      team TEXT NOT NULL,
      client TEXT NOT NULL,
      requested_at INTEGER NOT NULL,
      had_tokens INTEGER NOT NULL CHECK (had_tokens IN (0, 1))
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX deletion_account ON deletion (account, requested_at);

    CREATE TABLE outbox (
      number INTEGER PRIMARY KEY,
      event_id TEXT NOT NULL UNIQUE,
      account BLOB NOT NULL CHECK (length(account) = 32),
      written_at INTEGER NOT NULL,
      master_key_id TEXT NOT NULL,
      record BLOB NOT NULL
    ) STRICT;

    CREATE TABLE lease (
      name TEXT NOT NULL PRIMARY KEY,
      holder TEXT NOT NULL,
      until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """

  /// When each refresh token was given out to be validated, and what came of it. What counts them reads the index alone.
  private static let eighth: StaticString = """
    PRAGMA user_version = 8;

    ALTER TABLE token ADD COLUMN claimed_at INTEGER;
    ALTER TABLE token ADD COLUMN validated_at INTEGER;
    ALTER TABLE token ADD COLUMN invalid_at INTEGER;

    CREATE INDEX token_by_validation
      ON token (coalesce(claimed_at, issued_at), client, claimed_at, issued_at, kind, invalid_at)
      WHERE kind = 'refresh' AND invalid_at IS NULL;
    """

  /// Transfers of users between teams. What names a person is sealed, a plan's users under its data key. What names an
  /// account here is its hash under the first key, as is the code of a transfer identifier. Of conflicts several may have
  /// one account. What came of a transfer outlasts its plan.
  private static let ninth: StaticString = """
    PRAGMA user_version = 9;

    CREATE TABLE transfer_plan (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      name TEXT NOT NULL UNIQUE,
      side TEXT NOT NULL CHECK (side IN ('sending', 'receiving')),
      team TEXT NOT NULL,
      other_team TEXT NOT NULL CHECK (other_team <> team),
      client TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      accepted_at INTEGER,
      tried_at INTEGER,
      last_user INTEGER NOT NULL,
      master_key_id TEXT NOT NULL,
      data_key BLOB NOT NULL
    ) STRICT;

    CREATE TABLE transfer_user (
      plan INTEGER NOT NULL REFERENCES transfer_plan ON DELETE CASCADE,
      number INTEGER NOT NULL CHECK (number > 0),
      state TEXT NOT NULL CHECK (state IN ('waiting', 'done', 'refused', 'conflict')),
      reason TEXT CHECK ((reason IS NULL) = (state IN ('waiting', 'done'))),
      account BLOB CHECK (length(account) = 32),
      identifier BLOB CHECK (length(identifier) = 32),
      has_signed_in INTEGER NOT NULL CHECK (has_signed_in IN (0, 1)),
      person BLOB NOT NULL,
      PRIMARY KEY (plan, number)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX transfer_user_account
      ON transfer_user (account, plan, iif(state = 'conflict', number, 0)) WHERE account IS NOT NULL;
    CREATE UNIQUE INDEX transfer_user_identifier ON transfer_user (identifier, plan) WHERE identifier IS NOT NULL;
    CREATE INDEX transfer_user_state ON transfer_user (plan, state, number, reason, has_signed_in);

    CREATE TABLE transfer_import (
      plan INTEGER NOT NULL REFERENCES transfer_plan ON DELETE CASCADE,
      digest BLOB NOT NULL CHECK (length(digest) = 32),
      at INTEGER NOT NULL,
      PRIMARY KEY (plan, digest)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE transferred_account (
      account BLOB NOT NULL PRIMARY KEY CHECK (length(account) = 32),
      from_team TEXT NOT NULL,
      client TEXT NOT NULL,
      former BLOB UNIQUE CHECK (length(former) = 32),
      at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """

  /// A step of an erasure has the time and the severity of its event: what a weightier one has erased is erased for those
  /// before it. Steps from before have neither.
  private static let tenth: StaticString = """
    PRAGMA user_version = 10;

    ALTER TABLE erasure_progress ADD COLUMN occurred_at INTEGER;
    ALTER TABLE erasure_progress ADD COLUMN severity INTEGER;
    """
}
