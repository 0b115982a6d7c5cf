import AccountServices
import AppleSimulator
import Configuration
import EventLoop
import HTTPClient
import JSON

/// `siwa notify`: one signed notification, with any fault on request.
struct NotifyCommand: Command {
  static let name = "notify"
  static let summary = "Has a simulated Apple sign one notification and deliver it."
  static let details = """
    The simulator holds the keys, so one must run: 'siwa dev' or 'siwa simulate'. Exit code 0 if the receiver answered
    every copy as it should (200, or the refusal that the fault deserves), 1 if not.

    Faults:
    \(Fault.allCases.map { "  \($0.rawValue): \($0.summary)\n" }.joined())
    """
  static let examples = [
    CommandExample(
      "siwa notify account-delete --user ada --to https://localhost:8443/apple/notifications --simulator "
        + "https://localhost:8444 --trust certificate.pem",
      "Tells the ingress that Ada's Apple Account is gone."),
    CommandExample(
      "siwa notify consent-revoked --user ada --fault forged-signature --to URL --simulator URL",
      "Sends what nobody must believe."),
  ]

  let type: NotificationType
  let user: String
  let receiver: HTTPClientURL
  let simulator: HTTPClientURL?
  let audience: String
  let faults: [Fault]
  let copies: Int
  let trust: String?

  init(reading arguments: inout CommandArguments) {
    type = arguments.read(
      "TYPE", .choice(NotificationType.self),
      "What happened: \(NotificationType.allCases.map(\.rawValue).joined(separator: ", ")).")
    user = arguments.read("--user", "NAME", .text(1...255), "To whom: a name, always the same person, or a sub.")
    receiver = arguments.read("--to", "URL", .httpURL, "The receiver, as Apple would have been told.")
    let base = arguments.read("--simulator", "URL", .httpURL, "Where the simulator is, as 'siwa dev' prints it.").text
    simulator = HTTPClientURL(base.hasSuffix("/") ? "\(base)simulator/notify" : "\(base)/simulator/notify")
    audience = arguments.read(
      "--audience", "ID", .text(1...255), default: "com.example.app", "The App ID or Services ID that is told.")
    faults = arguments.readAll("--fault", "FAULT", .choice(Fault.self), "What is to be wrong; may be repeated.")
    copies = arguments.read("--copies", "NUMBER", .integer(1...100), default: 1, "How often it is delivered.")
    trust = arguments.readIfPresent("--trust", "FILE", .path, "PEM file with the simulator's certificate.")
    if simulator == nil { arguments.refuse("--simulator: expected an https address, or http on loopback") }
  }

  func run() async -> ExitCode { await deliver() }

  @Loop
  private func deliver() async -> ExitCode {
    guard let simulator else { return .misuse }
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-notify", trustAnchors: trust.map { .systemAnd(file: $0) } ?? .system, proxy: .none,
        connectTimeout: .seconds(5), maximumConnections: 1, maximumRequests: 1))
    defer { client.close() }
    let order = JSONValue.object([
      .init("type", .string(type.rawValue)), .init("user", .string(user)), .init("audience", .string(audience)),
      .init("to", .string(receiver.text)), .init("faults", .array(faults.map { .string($0.rawValue) })),
      .init("copies", .integer(Int64(copies))),
    ])
    do {
      let response = try await client.send(
        .post(
          order.bytes, to: simulator, headers: [("Content-Type", "application/json")], isRepeatable: true,
          within: .seconds(60),
          maximumBodySize: 65_536))
      let answer = String(decoding: response.body, as: UTF8.self)
      guard response.status == 200 else {
        Terminal.complain("siwa: the simulator answered \(response.status): \(answer)")
        return .failure
      }
      Terminal.say(answer)
      return try isRight(response.body) ? .success : .failure
    } catch {
      Terminal.complain("siwa: the simulator at \(simulator): \(error)")
      return .failure
    }
  }

  /// Whether each copy was answered as a receiver that keeps to the rules would.
  private func isRight(_ answer: [UInt8]) throws(JSONError) -> Bool {
    let wanted = faults.map(\.rightAnswer.status).first { $0 != 200 } ?? 200
    let attempts = try JSONValue(decoding: answer, JSONLimits(bytes: 65_536, depth: 8, members: 256))["attempts"]
    return attempts == .array(Array(repeating: .string("\(wanted)"), count: copies))
  }
}
