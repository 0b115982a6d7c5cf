import PostgreSQL

/// The form of the database, as the steps that lead to it. A step that was ever released is never changed: a new form
/// gets a new step.
enum PostgreSQLMigrations {
  /// The steps, in their order: the first makes version 1.
  static let steps: [StaticString] = [first, second, third, fourth, fifth, sixth, seventh, eighth]

  /// The version from which on nothing waits to be announced in a table of its own.
  static let withoutAnnouncements: Int64 = 2

  /// The version that this program reads and writes.
  static var version: Int64 { Int64(steps.count) }

  /// All times are in milliseconds since 1970. A `hash` stands for an account (HMAC-SHA256 under `hash_key`); what is
  /// sealed is nonce, ciphertext and tag of AES-256-GCM. A row of `guard` stands for an account that somebody changes:
  /// whoever does locks it first.
  private static let first: StaticString = """
    CREATE TABLE siwa.migration (
      version bigint PRIMARY KEY,
      applied_at timestamptz NOT NULL DEFAULT now()
    );

    CREATE TABLE siwa.store_key (
      number bigint PRIMARY KEY CHECK (number = 1),
      master_key_id text NOT NULL,
      hash_key bytea NOT NULL,
      announcement_key bytea NOT NULL
    );

    CREATE TABLE siwa.guard (
      hash bytea PRIMARY KEY CHECK (octet_length(hash) = 32)
    );

    CREATE TABLE siwa.account (
      hash bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
      team text NOT NULL,
      subject bytea NOT NULL,
      master_key_id text NOT NULL,
      data_key bytea NOT NULL,
      signed_in_at bigint
    );

    CREATE TABLE siwa.own_revocation (
      hash bytea NOT NULL CHECK (octet_length(hash) = 32),
      client text NOT NULL,
      at bigint NOT NULL,
      is_proven boolean NOT NULL,
      PRIMARY KEY (hash, client)
    );

    CREATE TABLE siwa.token (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      hash bytea NOT NULL REFERENCES siwa.account ON DELETE CASCADE,
      fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
      kind text NOT NULL CHECK (kind IN ('refresh', 'access')),
      client text NOT NULL,
      issued_at bigint NOT NULL,
      value bytea NOT NULL,
      UNIQUE (hash, client, kind, fingerprint)
    );

    CREATE TABLE siwa.relay (
      hash bytea PRIMARY KEY REFERENCES siwa.account ON DELETE CASCADE,
      status text NOT NULL CHECK (status IN ('enabled', 'disabled')),
      since bigint NOT NULL,
      is_private boolean NOT NULL,
      address bytea
    );

    CREATE TABLE siwa.ledger (
      consumer text NOT NULL,
      event_id text NOT NULL,
      hash bytea NOT NULL CHECK (octet_length(hash) = 32),
      outcome text NOT NULL,
      at bigint NOT NULL,
      topic text NOT NULL,
      partition bigint NOT NULL,
      "offset" bigint NOT NULL,
      PRIMARY KEY (consumer, event_id)
    );

    CREATE TABLE siwa.fence (
      consumer text NOT NULL,
      hash bytea NOT NULL CHECK (octet_length(hash) = 32),
      severity bigint NOT NULL,
      at bigint NOT NULL,
      tie bigint NOT NULL,
      PRIMARY KEY (consumer, hash, severity)
    );

    CREATE TABLE siwa.erasure (
      hash bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
      at bigint NOT NULL,
      is_final boolean NOT NULL,
      signed_in_at bigint
    );

    CREATE TABLE siwa.ended_authorization (
      hash bytea NOT NULL CHECK (octet_length(hash) = 32),
      client text NOT NULL,
      issued_up_to bigint NOT NULL,
      PRIMARY KEY (hash, client)
    );

    CREATE TABLE siwa.attempt (
      consumer text NOT NULL,
      event_id text NOT NULL,
      count bigint NOT NULL CHECK (count > 0),
      first_at bigint NOT NULL,
      last_at bigint NOT NULL,
      cause text NOT NULL,
      PRIMARY KEY (consumer, event_id)
    );

    CREATE SEQUENCE siwa.announcement_number;

    CREATE TABLE siwa.announcement (
      number bigint PRIMARY KEY,
      consumer text NOT NULL,
      partition bigint NOT NULL,
      records bytea NOT NULL
    );

    CREATE INDEX announcement_by_partition ON siwa.announcement (consumer, partition, number);

    CREATE SEQUENCE siwa.erasure_step_number;

    CREATE TABLE siwa.erasure_step (
      number bigint NOT NULL DEFAULT nextval('siwa.erasure_step_number'),
      event_id text NOT NULL,
      target text NOT NULL,
      hash bytea NOT NULL CHECK (octet_length(hash) = 32),
      state text NOT NULL CHECK (state IN ('begun', 'erased', 'retained', 'failed', 'discarded')),
      before bigint,
      affected bigint,
      after bigint,
      detail text NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY (event_id, target)
    );

    CREATE INDEX open_erasure_step ON siwa.erasure_step (event_id, target) WHERE state IN ('begun', 'failed');
    """

  /// What is announced is composed from the ledger; only how far it is is kept. What the ledger has from before, without a
  /// detail, is announced.
  private static let second: StaticString = """
    DROP TABLE siwa.announcement;
    DROP SEQUENCE siwa.announcement_number;
    ALTER TABLE siwa.store_key DROP COLUMN announcement_key;
    ALTER TABLE siwa.ledger ADD COLUMN detail text;

    CREATE TABLE siwa.announced (
      consumer text NOT NULL,
      topic text NOT NULL,
      partition bigint NOT NULL,
      claim bigint NOT NULL CHECK (claim > 0),
      "offset" bigint NOT NULL,
      beyond text NOT NULL,
      PRIMARY KEY (consumer, topic, partition)
    );
    """

  /// The hashing key can be replaced: a row notes how many keys there were when its hash was made. All other rows of an
  /// account have the hash that its row of `guard` has. Programs of the version before, which know the first key alone,
  /// would find no fence of who has moved to another one: without a table `erasure` they find out nothing at all.
  private static let third: StaticString = """
    ALTER TABLE siwa.store_key RENAME TO hash_key;
    ALTER TABLE siwa.hash_key DROP CONSTRAINT store_key_number_check;
    ALTER TABLE siwa.hash_key RENAME COLUMN hash_key TO key;
    ALTER TABLE siwa.hash_key ADD CHECK (number > 0);
    ALTER TABLE siwa.hash_key ADD COLUMN name text CHECK ((name IS NULL) = (number = 1));
    ALTER TABLE siwa.hash_key ADD COLUMN is_complete boolean NOT NULL DEFAULT true;
    ALTER TABLE siwa.hash_key ALTER COLUMN is_complete DROP DEFAULT;

    ALTER TABLE siwa.erasure RENAME TO erasure_fence;

    INSERT INTO siwa.guard (hash)
    SELECT hash FROM siwa.account UNION SELECT hash FROM siwa.fence UNION SELECT hash FROM siwa.erasure_fence
    UNION SELECT hash FROM siwa.ended_authorization UNION SELECT hash FROM siwa.own_revocation
    ON CONFLICT DO NOTHING;

    ALTER TABLE siwa.guard ADD COLUMN generation bigint NOT NULL DEFAULT 1;
    ALTER TABLE siwa.guard ALTER COLUMN generation DROP DEFAULT;
    ALTER TABLE siwa.ledger ADD COLUMN generation bigint NOT NULL DEFAULT 1;
    ALTER TABLE siwa.ledger ALTER COLUMN generation DROP DEFAULT;
    ALTER TABLE siwa.erasure_step ADD COLUMN generation bigint NOT NULL DEFAULT 1;
    ALTER TABLE siwa.erasure_step ALTER COLUMN generation DROP DEFAULT;
    """

  /// The exchanges of sign-ins' codes. What names an account here is its hash under the first key.
  private static let fourth: StaticString = """
    CREATE TABLE siwa.code_exchange (
      request bytea PRIMARY KEY CHECK (octet_length(request) = 32),
      content bytea NOT NULL CHECK (octet_length(content) = 32),
      code bytea NOT NULL UNIQUE CHECK (octet_length(code) = 32),
      account bytea NOT NULL CHECK (octet_length(account) = 32),
      client text NOT NULL,
      begun_at bigint NOT NULL,
      outcome text NOT NULL CHECK (outcome IN ('begun', 'new', 'known', 'over', 'refused')),
      signed_in_at bigint NOT NULL
    );

    CREATE INDEX code_exchange_begun_at ON siwa.code_exchange (begun_at);
    """

  /// Deletions that were asked for in an app, and events of our own that wait to be published. What names an account here
  /// is its hash under the first key.
  private static let fifth: StaticString = """
    CREATE TABLE siwa.deletion (
      event_id text PRIMARY KEY,
      account bytea NOT NULL CHECK (octet_length(account) = 32),
      team text NOT NULL,
      client text NOT NULL,
      requested_at bigint NOT NULL,
      had_tokens boolean NOT NULL
    );

    CREATE INDEX deletion_account ON siwa.deletion (account, requested_at);

    CREATE TABLE siwa.outbox (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      event_id text NOT NULL UNIQUE,
      account bytea NOT NULL CHECK (octet_length(account) = 32),
      written_at bigint NOT NULL,
      master_key_id text NOT NULL,
      record bytea NOT NULL
    );

    CREATE TABLE siwa.lease (
      name text PRIMARY KEY,
      holder text NOT NULL,
      until bigint NOT NULL
    );
    """

  /// When each refresh token was given out to be validated, and what came of it. What counts them reads the index alone.
  private static let sixth: StaticString = """
    ALTER TABLE siwa.token ADD COLUMN claimed_at bigint;
    ALTER TABLE siwa.token ADD COLUMN validated_at bigint;
    ALTER TABLE siwa.token ADD COLUMN invalid_at bigint;

    CREATE INDEX token_by_validation
      ON siwa.token (coalesce(claimed_at, issued_at)) INCLUDE (client, claimed_at, issued_at)
      WHERE kind = 'refresh' AND invalid_at IS NULL;
    """

  /// Transfers of users between teams. What names a person is sealed, a plan's users under its data key. What names an
  /// account here is its hash under the first key, as is the code of a transfer identifier. Of conflicts several may have
  /// one account. What came of a transfer outlasts its plan. Whoever erases locks the plans, and whoever adds users or
  /// writes answers locks their plan against that.
  private static let seventh: StaticString = """
    CREATE TABLE siwa.transfer_plan (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL UNIQUE,
      side text NOT NULL CHECK (side IN ('sending', 'receiving')),
      team text NOT NULL,
      other_team text NOT NULL CHECK (other_team <> team),
      client text NOT NULL,
      created_at bigint NOT NULL,
      accepted_at bigint,
      tried_at bigint,
      last_user bigint NOT NULL,
      master_key_id text NOT NULL,
      data_key bytea NOT NULL
    );

    CREATE TABLE siwa.transfer_user (
      plan bigint NOT NULL REFERENCES siwa.transfer_plan ON DELETE CASCADE,
      number bigint NOT NULL CHECK (number > 0),
      state text NOT NULL CHECK (state IN ('waiting', 'done', 'refused', 'conflict')),
      reason text CHECK ((reason IS NULL) = (state IN ('waiting', 'done'))),
      account bytea CHECK (octet_length(account) = 32),
      identifier bytea CHECK (octet_length(identifier) = 32),
      has_signed_in boolean NOT NULL,
      person bytea NOT NULL,
      PRIMARY KEY (plan, number)
    );

    CREATE UNIQUE INDEX transfer_user_account
      ON siwa.transfer_user (account, plan, (CASE WHEN state = 'conflict' THEN number ELSE 0 END))
      WHERE account IS NOT NULL;
    CREATE UNIQUE INDEX transfer_user_identifier ON siwa.transfer_user (identifier, plan) WHERE identifier IS NOT NULL;
    CREATE INDEX transfer_user_state ON siwa.transfer_user (plan, state, number) INCLUDE (reason, has_signed_in);

    CREATE TABLE siwa.transfer_import (
      plan bigint NOT NULL REFERENCES siwa.transfer_plan ON DELETE CASCADE,
      digest bytea NOT NULL CHECK (octet_length(digest) = 32),
      at bigint NOT NULL,
      PRIMARY KEY (plan, digest)
    );

    CREATE TABLE siwa.transferred_account (
      account bytea PRIMARY KEY CHECK (octet_length(account) = 32),
      from_team text NOT NULL,
      client text NOT NULL,
      former bytea UNIQUE CHECK (octet_length(former) = 32),
      at bigint NOT NULL
    );
    """

  /// A step of an erasure has the time and the severity of its event: what a weightier one has erased is erased for those
  /// before it. Steps from before have neither.
  private static let eighth: StaticString = """
    ALTER TABLE siwa.erasure_step ADD COLUMN occurred_at bigint;
    ALTER TABLE siwa.erasure_step ADD COLUMN severity bigint;
    """
}
