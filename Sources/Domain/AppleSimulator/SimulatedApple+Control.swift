import AccountEvents
import Cryptography
import HTTPClient
import HTTPServer
import JSON

extension SimulatedApple {
  /// Does what was told over HTTP, and answers in JSON: 200 with what came of it, or 400 with what was expected.
  func obey(_ request: HTTPRequest) async -> HTTPResponse {
    guard request.hasMethod("POST") else { return HTTPResponse(status: 405, headers: [("Allow", "POST")]) }
    switch await request.readBody(upTo: 65_536) {
    case .complete: break
    case .refused(let refusal): return .text("\(refusal)\n", status: refusal.status)
    case .lost: return HTTPResponse(status: 400)
    }
    do {
      let order = try request.withBody { body throws(OrderRefusal) in try Order(body) }
      switch request.path {
      case "/simulator/notify": return try await notify(order)
      case "/simulator/keys": return try setKeys(order)
      case "/simulator/team": return try enroll(order)
      case "/simulator/team/withdraw-key": return try withdrawKey(order)
      case "/simulator/sign-in": return try signIn(order)
      case "/simulator/tokens": return try setTokens(order)
      case "/simulator/revocations": return try setRevocations(order)
      case "/simulator/migrations": return try setMigrations(order)
      case "/simulator/transfer": return try transfer(order)
      case "/simulator/populate": return try populate(order)
      case "/simulator/withdraw-consent": return try withdrawConsent(order)
      case "/simulator/team/end-tokens":
        endTeamTokens()
        return .answer([:])
      case "/simulator/asked": return asked()
      case "/simulator/keys/rotate": return .answer(["kid": .string(try rotateKeys())])
      default: return .text("there is nothing at this path\n", status: 404)
      }
    } catch let refusal as OrderRefusal {
      return .answer(["expected": .string(refusal.expected)], status: 400)
    } catch {
      return .text("\(error)\n", status: 500)
    }
  }

  private func notify(_ order: Order) async throws -> HTTPResponse {
    guard let type: NotificationType = try order.choice("type") else { throw OrderRefusal(expected: "\"type\"") }
    var plan = try plan(order, to: try order.text("to"), attempts: 1)
    plan.copies = Int(try order.number("copies", 1...100, default: 1))
    let notification = try sign(
      type, of: Person(named: try order.text("user")), for: try order.text("audience"),
      faults: try order.chosenFaults())
    let attempts = await deliver([notification], plan).flatMap(\.attempts)
    return .answer([
      "jti": .string(notification.notification.jti),
      "sub": .string(notification.notification.person.subject),
      "attempts": .array(attempts.map { .string($0.description) }),
    ])
  }

  private func plan(_ order: Order, to receiver: String, attempts: Int64) throws(OrderRefusal) -> DeliveryPlan {
    guard let receiver = HTTPClientURL(receiver) else {
      throw OrderRefusal(expected: "\"to\", an https address, or http on loopback")
    }
    return DeliveryPlan(
      receiver: receiver, attempts: Int(try order.number("attempts", 1...10, default: attempts)), pause: .seconds(1),
      deadline: .seconds(30))
  }

  private func enroll(_ order: Order) throws -> HTTPResponse {
    let (team, clients) = (try order.text("team"), try order.list("audiences"))
    let addresses = order.listIfPresent("redirect_uris")
    guard addresses.allSatisfy({ HTTPClientURL($0) != nil }) else {
      throw OrderRefusal(expected: "\"redirect_uris\", https addresses without a fragment, or http on loopback")
    }
    if let receiver = order.textIfPresent("to") { notifications = try plan(order, to: receiver, attempts: 5) }
    for client in clients { register(redirectURIs: addresses, for: client) }
    let key = try enroll(team: team, clients: clients)
    return .answer(["key_id": .string(key.id), "private_key": .string(key.privateKeyPEM)])
  }

  private func withdrawKey(_ order: Order) throws -> HTTPResponse {
    let id = try order.text("key_id")
    guard developers.has(id) else { throw OrderRefusal(expected: "\"key_id\", the ID of a team's key") }
    withdrawKey(id)
    return .answer(["key_id": .string(id)])
  }

  private func signIn(_ order: Order) throws -> HTTPResponse {
    let person = Person(named: try order.text("user"))
    let code = try signIn(
      person, to: try order.text("audience"), redirectURI: order.textIfPresent("redirect_uri"))
    return .answer([
      "code": .string(code), "sub": .string(known(person, to: try order.text("audience")).subject),
    ])
  }

  private func transfer(_ order: Order) throws -> HTTPResponse {
    let (client, from, to) = (try order.text("audience"), try order.text("team"), try order.text("target"))
    let days = try order.numberIfPresent("accepted_days_ago", 0...3650)
    transfer(client, from: from, to: to, acceptedAt: days.map { clock() - .seconds($0 * 86_400) })
    return .answer(["accepted": .boolean(days != nil)])
  }

  private func populate(_ order: Order) throws -> HTTPResponse {
    populate(try order.text("audience"))
    return .answer([:])
  }

  private func withdrawConsent(_ order: Order) throws -> HTTPResponse {
    withdrawConsent(of: Person(named: try order.text("user")), to: try order.text("audience"))
    return .answer([:])
  }

  private func asked() -> HTTPResponse {
    .answer([
      "keys": .integer(Int64(keysAsked)), "tokens": .integer(Int64(tokensAsked)),
      "revocations": .integer(Int64(revocationsAsked)), "migrations": .integer(Int64(migrationsAsked)),
    ])
  }

  private func setTokens(_ order: Order) throws -> HTTPResponse {
    (tokensAnswer, tokensDelay) = try manners(order)
    return .answer(["answer": .string(tokensAnswer.rawValue)])
  }

  private func setRevocations(_ order: Order) throws -> HTTPResponse {
    (revocationsAnswer, revocationsDelay) = try manners(order)
    return .answer(["answer": .string(revocationsAnswer.rawValue)])
  }

  private func setMigrations(_ order: Order) throws -> HTTPResponse {
    (migrationAnswer, migrationDelay) = try manners(order)
    return .answer(["answer": .string(migrationAnswer.rawValue)])
  }

  private func manners(_ order: Order) throws(OrderRefusal) -> (TokensAnswer, Duration) {
    (try order.choice("answer") ?? .tokens, .milliseconds(try order.number("delay_ms", 0...600_000, default: 0)))
  }

  private func setKeys(_ order: Order) throws -> HTTPResponse {
    keysAnswer = try order.choice("answer") ?? .keys
    keysDelay = .milliseconds(try order.number("delay_ms", 0...600_000, default: 0))
    return .answer(["answer": .string(keysAnswer.rawValue)])
  }
}

extension HTTPResponse {
  fileprivate static func answer(_ value: JSONValue, status: Int = 200) -> HTTPResponse {
    .json(value.bytes, status: status)
  }
}
