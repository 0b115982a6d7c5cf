package import AccountEvents
package import Cryptography

/// An entry of the audit log: an obligation, an effect, a decision of a person, or a gap in what the log has seen.
///
/// Its bytes are canonical JSON (RFC 8785), described by `schemas/audit-entry.v1.json`. It holds no personal data of
/// users: an account appears as the keyed hash of the account store. Who decided something, and why, stand in it as they wrote
/// it.
package enum AuditEntry: Sendable, Hashable {
  /// An event on `Topic.accountEvents`: something that has to be done.
  case obligation(Obligation)
  /// A record on `Topic.outcomes`: what was done.
  case effect(Effect)
  /// What a person has decided about an event.
  case decision(Decision)
  /// Records that the log has not seen, or could not read.
  case gap(Gap)

  /// The most bytes that an entry may have: what an entry bundle (C2SP tlog-tiles) can hold.
  package static let maximumSize = 65_535

  /// The record that an entry is about.
  package struct Source: Sendable, Hashable {
    /// Where it stood when it was logged.
    package let origin: RecordOrigin
    /// The time of its record; nil where the broker did not say.
    package let time: Timestamp?

    /// A source from its parts.
    package init(_ origin: RecordOrigin, at time: Timestamp?) { (self.origin, self.time) = (origin, time) }
  }

  /// An event that something follows from.
  package struct Obligation: Sendable, Hashable {
    /// What was found about Apple's signature when the entry was written.
    package enum Signature: String, Sendable, Hashable, CaseIterable {
      /// Apple's signature holds, by a key on `Topic.signingKeys`, and what it signed contains the event.
      case verified
      /// The record has no signature: the event is an operator's or an application's request.
      case none
      /// The key that the signature names was not on `Topic.signingKeys`, though it was waited for.
      case unknownKey = "unknown-key"
      /// The signature is not the key's, or what it signed does not contain the event.
      case refused
    }

    /// Where the event stands.
    package var source: Source
    /// The event's id.
    package var id: EventID
    /// The team of the app.
    package var team: TeamID
    /// The app that Apple addressed.
    package var audience: ClientID
    /// What happened: `account-delete`.
    package var type: String
    /// When it happened.
    package var occurredAt: Timestamp
    /// When Apple signed it.
    package var issuedAt: Timestamp
    /// The keyed hash of the account.
    package var account: AccountHash
    /// The SHA-256 of the notification as Apple signed it; nil where the record has none.
    package var jws: SHA256Digest?
    /// The key that the notification names; nil where none can be read.
    package var keyID: KeyID?
    /// What was found about the signature.
    package var signature: Signature

    /// An obligation from its parts.
    package init(
      _ event: AccountEvent, at source: Source, account: AccountHash, jws: SHA256Digest?, keyID: KeyID?,
      signature: Signature
    ) {
      (self.source, id, team, audience) = (source, event.id, event.team, event.audience)
      (type, occurredAt, issuedAt) = (event.kind.name, event.occurredAt, event.issuedAt)
      (self.account, self.jws, self.keyID, self.signature) = (account, jws, keyID, signature)
    }
  }

  /// An outcome: what a consumer did about an event.
  package struct Effect: Sendable, Hashable {
    /// Where the outcome stands.
    package let source: Source
    /// The outcome's JSON as it stands on its topic, in canonical form; without its `targets` where it is `abridged`.
    package var outcome: [UInt8]
    /// The event that it followed from.
    package let cause: EventID
    /// The SHA-256 of the record's value, where the outcome is too large for an entry; nil where `outcome` is all of it.
    package var abridged: SHA256Digest?
  }

  /// A person's decision.
  package struct Decision: Sendable, Hashable {
    /// What was decided.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
      /// An event in quarantine was published.
      case released
      /// Nothing follows from an event in quarantine, or from a dead letter.
      case discarded
      /// A dead letter was given to its consumer again.
      case retried
      /// An operator asked for the erasure of an account; the obligation is an entry of its own.
      case erasureRequested = "erasure-requested"
    }

    /// Where the decision stands.
    package var source: Source
    /// When it was made.
    package var time: Timestamp
    /// Who made it.
    package var person: String
    /// Why; nil where nothing was said.
    package var reason: String?
    /// What was decided.
    package var kind: Kind
    /// Where the letter stood that it is about; nil of an erasure that was requested.
    package var letter: LetterPlace?
    /// The event; nil where the letter did not name one.
    package var id: EventID?
    /// The team of the app, where that is known.
    package var team: TeamID?
    /// The app, where that is known.
    package var audience: ClientID?

    /// A decision from its parts.
    package init(
      _ kind: Kind, at source: Source, time: Timestamp, by person: String, because reason: String?,
      letter: LetterPlace?, id: EventID?, team: TeamID?, audience: ClientID?
    ) {
      (self.kind, self.source, self.time) = (kind, source, time)
      (self.person, self.reason, self.letter) = (person, reason, letter)
      (self.id, self.team, self.audience) = (id, team, audience)
    }
  }

  /// Records that the log has not seen, or could not read: a log that keeps silent about them would look complete.
  package struct Gap: Sendable, Hashable {
    /// Why they were not seen.
    package enum Cause: String, Sendable, Hashable, CaseIterable {
      /// Kafka no longer had them, or never had had them, when the log came to their offsets.
      case missing
      /// The partition's offsets began again at `to`: its topic was made anew, or has lost its end.
      case begunAnew = "begun-anew"
      /// The record is none that this version understands.
      case unreadable
    }

    /// The topic.
    package var topic: String
    /// The partition.
    package var partition: Int32
    /// The offset that was expected.
    package var from: Int64
    /// The offset at which reading went on.
    package var to: Int64
    /// Why.
    package var cause: Cause
    /// When it was noticed.
    package var time: Timestamp

    /// A gap from its parts.
    package init(_ cause: Cause, topic: String, partition: Int32, from: Int64, to: Int64, at time: Timestamp) {
      (self.cause, self.topic, self.partition) = (cause, topic, partition)
      (self.from, self.to, self.time) = (from, to, time)
    }
  }
}

extension AuditEntry {
  /// The time of the record that the entry is about, where the broker has said it; nil of a gap.
  package var recordTime: Timestamp? {
    switch self {
    case .obligation(let obligation): obligation.source.time
    case .effect(let effect): effect.source.time
    case .decision(let decision): decision.source.time
    case .gap: nil
    }
  }

  /// The offset at which its partition is read on once the entry is in the log.
  package var next: (partition: RecordOrigin, offset: Int64) {
    switch self {
    case .obligation(let obligation): (obligation.source.origin, obligation.source.origin.offset + 1)
    case .effect(let effect): (effect.source.origin, effect.source.origin.offset + 1)
    case .decision(let decision): (decision.source.origin, decision.source.origin.offset + 1)
    case .gap(let gap): (RecordOrigin(gap.topic, gap.partition, gap.from), gap.to)
    }
  }
}
