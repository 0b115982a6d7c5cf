package import AccountEvents
import Cryptography
import JSON

/// Believes or refuses what claims to be a notification from Apple.
///
/// The checks stand in the order of their cost, so that a flood of junk costs little: size, form, three parts, header,
/// key known; then the signature; and only when that holds are the claims read at all.
package struct NotificationVerifier: Sendable {
  private let issuer: String
  private let teams: [ClientID: TeamID]
  /// How far Apple's clock and ours may lie apart.
  package let clockTolerance: Duration
  /// The same in milliseconds, because arithmetic on `Duration` is 128 bits wide.
  private let tolerance: Int64

  /// A verifier for the apps of some teams.
  ///
  /// - Parameters:
  ///   - issuer: Who must have issued a notification: `https://appleid.apple.com`, or somebody else in a rehearsal.
  ///   - teams: The team of each app that is ours.
  ///   - clockTolerance: How far Apple's clock and ours may lie apart, at most a day.
  package init(issuer: String, teams: [ClientID: TeamID], clockTolerance: Duration) {
    precondition(.zero...(.seconds(86_400)) ~= clockTolerance, "the tolerance is that of no clock")
    (self.issuer, self.teams) = (issuer, teams)
    (self.clockTolerance, tolerance) = (clockTolerance, Int64(clockTolerance / .milliseconds(1)))
  }

  /// Judges the body of a POST by the clock and the keys that it is given.
  ///
  /// A key that Apple has no more is believed for what it signed until Apple was last seen to have it: that was on its way
  /// when the key went. What it signed later is `.unknownKey` first, because Apple may have the key again. With
  /// `wasLookedUp` Apple was asked for it in vain: then its events are kept aside, with the reason `retired-key`. They are
  /// not refused: the signature holds, and Apple may have signed them between our last look and the key's end. Nor are
  /// they acted on: a key that is withdrawn may be somebody else's by now, and nothing was ever seen of Apple's using it
  /// then.
  ///
  /// Never traps and never waits, whatever the bytes are. At most a quarter more than the bare RSA verification, see
  /// Benchmarks.
  package func verify(
    _ body: RawSpan, at now: Timestamp, keys: AppleKeySet, wasLookedUp: Bool = false
  ) -> Verdict {
    do {
      let notification = try UnverifiedNotification(body: body)
      guard let (key, written, lastSeen) = keys.find(notification.jws.keyID, at: now) else {
        return .unknownKey(notification.jws.keyID)
      }
      guard notification.jws.isSigned(by: key) else { return .refused(.wrongSignature) }
      let verified = try believe(notification, by: written, lastSeen: lastSeen, at: now, acceptingLate: false)
      if !wasLookedUp, isLate(verified.issuedAt, after: lastSeen) { return .unknownKey(notification.jws.keyID) }
      return .verified(verified)
    } catch {
      return .refused(error)
    }
  }

  /// The app that a notification names first, for an operator to read: whether it is one of ours was not asked, nor whether
  /// Apple signed it. Nil where none can be read.
  package func audience(in body: RawSpan) -> ClientID? {
    do {
      let claims = try NotificationClaims(reading: UnverifiedNotification(body: body).jws.payload)
      return claims.audiences.first.flatMap(ClientID.init)
    } catch {
      return nil  // whatever is wrong with it, it names nobody
    }
  }

  private func isLate(_ issue: Timestamp, after lastSeen: Timestamp?) -> Bool {
    lastSeen.map { $0.milliseconds + tolerance < issue.milliseconds } ?? false
  }

  /// Judges the claims of a notification whose signature holds. `lastSeen`: when Apple was last seen to have the key; nil
  /// where Apple has it now. `acceptingLate` says that its time may be over.
  func believe(
    _ notification: UnverifiedNotification, by signingKey: AppleSigningKey, lastSeen: Timestamp?, at now: Timestamp,
    acceptingLate isLateAccepted: Bool
  ) throws(Refusal) -> VerifiedNotification {
    let claims: NotificationClaims
    do {
      claims = try NotificationClaims(reading: notification.jws.payload)
    } catch {
      throw .malformedClaims
    }
    if claims.isAboutSignIn { throw .identityToken }
    guard let written = claims.events, let jti = claims.id else { throw .notANotification }
    guard let claimedIssuer = claims.issuer else { throw .malformedClaims }
    guard claimedIssuer == issuer else { throw .wrongIssuer }
    let (audience, team) = try addressee(claims.audiences)
    guard
      let expiry = claims.expiry.flatMap(Timestamp.init(seconds:)),
      let issue = claims.issue.flatMap(Timestamp.init(seconds:)),
      let id = EventID(jti), jti.utf8.count <= NotificationFrame.longestID
    else { throw .malformedClaims }

    let latest = now.milliseconds + tolerance
    // First the key: whoever took it away from Apple also chooses the times.
    let untimely: QuarantinedEvent.Reason? =
      isLate(issue, after: lastSeen)
      ? .retiredKey
      : expiry.milliseconds < now.milliseconds - tolerance && !isLateAccepted
        ? .expired : latest < issue.milliseconds ? .notYetValid : nil
    let frame = NotificationFrame(
      id: id, team: team, audience: audience, issuedAt: issue, payload: notification.jws.payload, untimely: untimely,
      latest: latest)
    return VerifiedNotification(
      id: id, team: team, audience: audience, issuedAt: issue, signingKey: signingKey,
      events: frame.events(in: written), jws: notification.jws.text)
  }

  /// The first audience that is an app of ours, and its team.
  private func addressee(_ audiences: [String]) throws(Refusal) -> (ClientID, TeamID) {
    guard !audiences.isEmpty else { throw .malformedClaims }
    var chosen: (audience: ClientID, team: TeamID)?
    for text in audiences {
      guard let audience = ClientID(text), let team = teams[audience] else { continue }
      guard let earlier = chosen else {
        chosen = (audience, team)
        continue
      }
      guard earlier.team == team else { throw .severalTeams }
    }
    guard let chosen else { throw .unknownAudience }
    return chosen
  }
}
