package import AccountEvents
import Cryptography
import HTTPServer

// MARK: What developers and people do

extension SimulatedApple {
  /// An app goes from one team to another, which accepts it then; with nil not yet.
  ///
  /// Until then the app is the sending team's, and that team alone may ask for transfer identifiers. From then on it is the
  /// receiving team's, and for 60 days both may ask: the one for identifiers, the other who they stand for. After that
  /// neither gets anything but `invalid_request`.
  ///
  /// The receiving team knows everybody by a subject and a relay address of its own, in whatever app: so this is told before
  /// anybody signs in to one of its apps. A `Person` stays who their name makes them. Who was a user before the acceptance
  /// has a transfer identifier in their identity tokens for 60 days. What had been given out for the app, codes and tokens,
  /// is good as before, for the team that has the app.
  package func transfer(_ client: String, from: String, to: String, acceptedAt: Timestamp?) {
    transfers.begin(client, from: from, to: to, acceptedAt: acceptedAt)
  }

  /// Whoever has the form of a subject is a user of the app from now on, but for those whose consent ends: for rehearsals
  /// with more users than there are sign-ins.
  package func populate(_ client: String) { authorizations.populate(client) }

  /// A person withdraws their consent for the app, and nobody is told.
  package func withdrawConsent(of person: Person, to client: String) { authorizations.end(person, client) }

  /// Ends the access tokens of all teams before their hour is over.
  package func endTeamTokens() { transfers.endTokens() }

  /// The person as the team knows them that has the app.
  package func known(_ person: Person, to client: String) -> Person {
    guard let team = team(of: client), transfers.isRecipient(team) else { return person }
    return person.known(to: team)
  }

  /// What stands for a person in their identity tokens, where they were a user of the app before it changed teams.
  func transferIdentifier(of person: Person, to client: String) -> String? {
    guard let acceptance = transfers.openSince(client, at: clock()), let team = team(of: client),
      authorizations.isUser(person.subject, of: client, before: acceptance)
    else { return nil }
    return transfers.identifier(of: person.subject, for: team, asking: nil)
  }

  /// The team that has an app; nil of one that nobody made known.
  func team(of client: String) -> String? { transfers.team(of: client, at: clock()) ?? developers.team(of: client) }
}

// MARK: The endpoint

extension SimulatedApple {
  /// `grant_type=client_credentials` of `POST /auth/token`.
  func teamToken(_ form: FormFields, for caller: Caller) throws -> Outcome {
    guard form["scope"] == "user.migration" else { return .failure("invalid_scope") }
    let token = try Authorizations.newAccessToken()
    transfers.issue(token, to: caller, at: clock())
    return .success(
      Members(["access_token": quoted(token), "token_type": quoted("Bearer"), "expires_in": "3600"]))
  }

  /// `POST /auth/usermigrationinfo`.
  func migrationResponse(_ request: HTTPRequest) async -> HTTPResponse {
    migrationsAsked += 1
    let isThrottled = migrationThrottle.map { migrationsAsked % $0 == 0 } ?? false
    return await response(to: request, as: isThrottled ? .throttled : migrationAnswer, after: migrationDelay) {
      form, caller in
      // So Apple's engineers say of a token that is over.
      guard let token = request.bearerToken, transfers.accepts(token, of: caller, at: clock()) else {
        return .failure("invalid_grant")
      }
      if let subject = form["sub"], migrationOddities.contains(subject) { return .failure("odd_error") }
      let members =
        switch (form["sub"], form["target"], form["transfer_sub"]) {
        case (let subject?, let target?, nil): generate(subject, for: target, caller)
        case (nil, nil, let identifier?): exchange(identifier, caller)
        default: nil as Members?
        }
      return members.map { .success($0) } ?? .failure("invalid_request")
    }
  }

  private func generate(_ subject: String, for target: String, _ caller: Caller) -> Members? {
    guard TeamID(target) != nil, transfers.mayGenerate(caller, for: target, at: clock()) else { return nil }
    // The subject that the person's name makes.
    let subject = transfers.isRecipient(caller.team) ? Person.exchanged(subject, for: caller.team) : subject
    guard authorizations.user(subject, of: caller.client) != nil else { return nil }
    return Members(["transfer_sub": quoted(transfers.identifier(of: subject, for: target, asking: caller.team))])
  }

  private func exchange(_ identifier: String, _ caller: Caller) -> Members? {
    guard let subject = transfers.subject(of: identifier, for: caller, at: clock()),
      let user = authorizations.user(subject, of: caller.client)
    else { return nil }
    let person = user.known(to: caller.team)
    var members = Members(["sub": quoted(person.subject)])
    if person.hidesAddress, person.tellsAddress {
      members["email"] = quoted(person.address)
      members["is_private_email"] = "true"
    }
    return members
  }
}

extension HTTPRequest {
  /// The token of `Authorization: Bearer …`.
  fileprivate var bearerToken: String? {
    guard let field = header("Authorization"), field.hasPrefix("Bearer ") else { return nil }
    return String(field.dropFirst(7))
  }
}
