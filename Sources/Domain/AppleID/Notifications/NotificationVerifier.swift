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
  /// In milliseconds.
  private let clockTolerance: Int64

  /// A verifier for the apps of some teams.
  ///
  /// - Parameters:
  ///   - issuer: Who must have issued a notification: `https://appleid.apple.com`, or somebody else in a rehearsal.
  ///   - teams: The team of each app that is ours.
  ///   - clockTolerance: How far Apple's clock and ours may lie apart, at most a day.
  package init(issuer: String, teams: [ClientID: TeamID], clockTolerance: Duration) {
    precondition(.zero...(.seconds(86_400)) ~= clockTolerance, "the tolerance is that of no clock")
    (self.issuer, self.teams) = (issuer, teams)
    // Once, because arithmetic on `Duration` is 128 bits wide.
    self.clockTolerance = Int64(clockTolerance / .milliseconds(1))
  }

  /// Judges the body of a POST by the clock and the keys that it is given.
  ///
  /// Never traps and never waits, whatever the bytes are. At most a quarter more than the bare RSA verification, see
  /// Benchmarks.
  package func verify(_ body: RawSpan, at now: Timestamp, keys: AppleKeySet) -> Verdict {
    do {
      let notification = try UnverifiedNotification(body: body)
      guard let key = keys[notification.keyID], let signingKey = keys.signingKey(notification.keyID) else {
        return .unknownKey(notification.keyID)
      }
      guard notification.isSigned(by: key) else { return .refused(.wrongSignature) }
      return .verified(try believe(notification, by: signingKey, at: now))
    } catch {
      return .refused(error)
    }
  }

  /// Judges the claims of a notification whose signature holds.
  func believe(
    _ notification: UnverifiedNotification, by signingKey: AppleSigningKey, at now: Timestamp
  ) throws(Refusal) -> VerifiedNotification {
    let claims: NotificationClaims
    do {
      claims = try NotificationClaims(reading: notification.payload)
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

    let latest = now.milliseconds + clockTolerance
    let untimely: QuarantinedEvent.Reason? =
      expiry.milliseconds < now.milliseconds - clockTolerance
      ? .expired : latest < issue.milliseconds ? .notYetValid : nil
    let frame = NotificationFrame(
      id: id, team: team, audience: audience, issuedAt: issue, payload: notification.payload, untimely: untimely,
      latest: latest)
    return VerifiedNotification(
      id: id, team: team, audience: audience, issuedAt: issue, signingKey: signingKey,
      events: frame.events(in: written), jws: notification.jws)
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
