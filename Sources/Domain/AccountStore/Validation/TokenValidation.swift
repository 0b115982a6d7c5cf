package import AccountEvents

/// A refresh token that is to be validated now, and that nobody else is given for a day.
package struct DueToken: Sendable, Hashable {
  /// Whose it is.
  package let account: Account
  /// The app that it was issued to.
  package let client: ClientID
  /// The token: secret.
  package let value: SecretToken
  /// When the person signed in for it.
  package let issuedAt: Timestamp
  /// When it was given out to be validated: from then on it counts as asked about.
  package let claimedAt: Timestamp
  /// When it was given out last before; nil where it never was.
  package let claimedBefore: Timestamp?

  /// A token from its parts.
  package init(
    account: Account, client: ClientID, value: SecretToken, issuedAt: Timestamp, claimedAt: Timestamp,
    claimedBefore: Timestamp?
  ) {
    (self.account, self.client, self.value) = (account, client, value)
    (self.issuedAt, self.claimedAt, self.claimedBefore) = (issuedAt, claimedAt, claimedBefore)
  }
}

/// The tokens that were given out together.
package struct ClaimedTokens: Sendable {
  /// Those that were longest without a validation, first.
  package var tokens: [DueToken] = []
  /// How many more there were that do not open: `siwa store integrity` names their accounts.
  package var damaged = 0

  /// These tokens, all of which open.
  package init(_ tokens: [DueToken] = []) { self.tokens = tokens }
}

/// What Apple has made of a token, as far as anybody knows.
package struct TokenValidation: Sendable, Hashable {
  /// What was found.
  package enum Finding: Sendable, Hashable {
    /// It is good.
    case good
    /// It is not, and never will be again. Where nothing good is left of the person's authorization of `clients`, that
    /// becomes an event with this id.
    case invalid(EventID, of: Set<ClientID>)
    /// Apple was certainly not asked: it is due as before.
    case notAsked
  }

  /// The token.
  package let token: DueToken
  /// What was found.
  package let finding: Finding

  /// A finding about a token.
  package init(of token: DueToken, _ finding: Finding) { (self.token, self.finding) = (token, finding) }
}

/// What became of a finding.
package enum RecordedValidation: Sendable, Hashable {
  /// It is noted.
  case noted
  /// It is noted that the token is invalid, and waits in the outbox that the authorization is over.
  case published
  /// It is noted that the token is invalid. A younger sign-in, or a token that is not known to be invalid, is held.
  case covered
  /// The token is no longer held, was known to be invalid, or is of a later sign-in by now: nothing was changed.
  case gone
}

/// How far the validation of all tokens is.
package struct ValidationCensus: Sendable, Hashable {
  /// How many refresh tokens are held that are not known to be invalid.
  package let tokens: Int
  /// How many of them are due.
  package let due: Int
  /// Since when the one has been due that was validated before and has waited longest; nil where none is.
  package let dueSince: Timestamp?

  /// A census from its parts.
  package init(tokens: Int, due: Int, dueSince: Timestamp?) {
    (self.tokens, self.due, self.dueSince) = (tokens, due, dueSince)
  }
}

extension TokenValidation {
  /// Apple may throttle who validates a token more than once a day: so long none is given out again.
  package static let interval = Duration.seconds(86_400) + patience
  /// How long a token may wait for its turn once it is given out.
  package static let patience = Duration.seconds(60)
}

/// What of a token's validations goes on with it where its row is written anew.
package struct ValidationMarks: Sendable, Hashable {
  /// When it was given out to be validated last.
  package var claimedAt: Timestamp?
  /// When Apple last said that it is good, or that it is not.
  package var validatedAt: Timestamp?
  /// When it was found to be invalid.
  package var invalidAt: Timestamp?

  /// Marks from their parts; by itself nothing was asked yet.
  package init(claimedAt: Timestamp? = nil, validatedAt: Timestamp? = nil, invalidAt: Timestamp? = nil) {
    (self.claimedAt, self.validatedAt, self.invalidAt) = (claimedAt, validatedAt, invalidAt)
  }
}
