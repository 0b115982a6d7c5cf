import AppleSimulator
import EventLoop
import Foundation
import HTTPServer
import TestSupport
import Testing

/// What docs/sign-in.md shows in several languages does what it says, where the language is to be had.
@Loop @Suite(.serialized, .timeLimit(.minutes(30))) struct ExampleTests {
  enum Language: String, CaseIterable {
    case python, node, go, java, swift

    static var present: [Language] {
      allCases.filter { language in language.tools.allSatisfy { FileManager.default.isExecutableFile(atPath: $0) } }
    }

    private var tools: [String] {
      switch self {
      case .python: ["/usr/bin/python3"]
      case .node: ["/usr/bin/node"]
      case .go: ["/usr/bin/go"]
      case .java: ["/usr/bin/javac", "/usr/bin/java", "/usr/bin/keytool"]
      case .swift: []
      }
    }

    private static let (sources, folder) = (Repository.root + "/docs/examples", Repository.root + "/.build/examples")

    /// What has to be built before it can run: a program with its arguments.
    var building: [String]? {
      switch self {
      case .python, .node: nil
      case .go: ["/usr/bin/go", "build", "-o", "\(Self.folder)/sign_in", "\(Self.sources)/sign_in.go"]
      case .java: ["/usr/bin/javac", "-d", Self.folder, "\(Self.sources)/SignIn.java"]
      case .swift: ["swiftc", "-o", "\(Self.folder)/SignIn", "\(Self.sources)/SignIn.swift"]
      }
    }

    /// The program with its arguments.
    var running: [String] {
      switch self {
      case .python: ["/usr/bin/python3", "\(Self.sources)/sign_in.py"]
      case .node: ["/usr/bin/node", "\(Self.sources)/sign-in.mjs"]
      case .go: ["\(Self.folder)/sign_in"]
      case .java: ["/usr/bin/java", "-cp", Self.folder, "SignIn"]
      case .swift: ["\(Self.folder)/SignIn"]
      }
    }

    @Loop func build() async throws {
      try FileManager.default.createDirectory(atPath: Self.folder, withIntermediateDirectories: true)
      guard let building else { return }
      let environment = ["GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": "\(Self.folder)/go-cache", "GOPROXY": "off"]
      let (end, errors) = try await RunningProgram.run(path: building[0], Array(building.dropFirst()), environment) {
        program in (try await program.untilEnd(), program.errors)
      }
      try #require(end == .exit(0), "\(errors)")
    }

    /// How the language is told whose certificates to believe.
    @Loop func trusting(_ certificate: String, in files: TemporaryDirectory) async throws -> [String: String] {
      switch self {
      case .python, .go: return ["SSL_CERT_FILE": certificate]
      case .node: return ["NODE_EXTRA_CA_CERTS": certificate]
      case .swift: return [:]  // Foundation believes the system's authorities alone: see `door`.
      case .java:
        let store = files.path + "/trust.p12"
        let made = try await RunningProgram.finish(
          path: "/usr/bin/keytool",
          [
            "-importcert", "-noprompt", "-alias", "siwa", "-file", certificate, "-keystore", store, "-storepass",
            "changeit",
          ])
        try #require(made.end == .exit(0), "\(made.errors)")
        return [
          "JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=\(store) -Djavax.net.ssl.trustStorePassword=changeit"
        ]
      }
    }
  }

  private static let redirectURI = "https://www.example.com/apple"

  @Test(arguments: Language.present)
  func aPersonSignsInByWayOfTheExample(language: Language) async throws {
    try await language.build()
    try await AccountsStage.run { stage in
      stage.apple.register(redirectURIs: [Self.redirectURI], for: AccountsStage.web)
      try await stage.accounts { running in
        let door = try language == .swift ? Door(to: "https://localhost:\(running.address.port)", stage) : nil
        defer { door?.close() }
        var environment = try await environment(stage, running, language)
        if let door { environment["ACCOUNTS_URL"] = door.address }
        let form = try await run(language, environment) { try await stage.authorize($0, as: "ada@example.com") }
        #expect(form.end == .exit(0), "\(form.errors)")
        let accounts = try await running.administration.metric(#"siwa_accounts_sign_ins_total{outcome="new"}"#)
        #expect(accounts == 1)
        #expect(form.last.utf8.count == 43, "\(form.last)")

        // Whoever brings an answer of Apple's to another browser's sign-in is refused.
        let foreign = try await run(language, environment) { address in
          let form = try await stage.authorize(address, as: "eve@example.com")
          return form.replacing(#/state=[^&]*/#, with: "state=another")
        }
        #expect(foreign.last.utf8.count != 43)
        #expect(foreign.errors.contains("another") == false)
        #expect(try await running.administration.metric(#"siwa_accounts_sign_ins_total{outcome="new"}"#) == 1)
      }
    }
  }

  /// The answer to the first request is lost on its way.
  @Test(arguments: Language.present)
  func whatIsLostOrLimitedIsAskedAgainUnderTheSameKey(language: Language) async throws {
    try await behindADoor(language) { stage, door, environment in
      door.troubles = [.lost, .limited, .unavailable]
      let asked = stage.apple.tokensAsked
      let form = try await run(language, environment) { try await stage.authorize($0, as: "ada@example.com") }
      #expect(form.end == .exit(0) && form.last.utf8.count == 43, "\(form.last)\n\(form.errors)")
      #expect(door.keys.count == 4 && Set(door.keys).count == 1)
      #expect(stage.apple.tokensAsked == asked + 1)

      // But not for ever.
      door.troubles = Array(repeating: .limited, count: 100)
      let refused = try await run(language, environment) { try await stage.authorize($0, as: "bob@example.com") }
      #expect(refused.end != .exit(0) && refused.last.utf8.count != 43)
      #expect(door.keys.count == 9 && Set(door.keys).count == 2)
    }
  }

  /// A code is good for five minutes, and Apple may want to be left alone for a day.
  @Test(arguments: Language.present)
  func whoWouldHaveToWaitLongerThanTheCodeIsGoodBeginsAgain(language: Language) async throws {
    try await behindADoor(language) { stage, door, environment in
      for trouble in [Door.Trouble.unavailableForADay, .limitedForADay] {
        door.troubles = [.unavailable, trouble]
        let asked = door.keys.count
        let form = try await run(language, environment) { try await stage.authorize($0, as: "ada@example.com") }
        #expect(form.last == "begin again", "\(form.last)\n\(form.errors)")
        #expect(door.keys.count == asked + 2)
      }
    }
  }

  /// Runs `body` with an example's environment, where `siwa-accounts` is behind a door.
  private func behindADoor(
    _ language: Language, _ body: @Loop (AccountsStage, Door, [String: String]) async throws -> Void
  ) async throws {
    try await language.build()
    try await AccountsStage.run { stage in
      stage.apple.register(redirectURIs: [Self.redirectURI], for: AccountsStage.web)
      try await stage.accounts { running in
        let door = try Door(to: "https://localhost:\(running.address.port)", stage)
        defer { door.close() }
        var environment = try await environment(stage, running, language)
        environment["ACCOUNTS_URL"] = door.address
        try await body(stage, door, environment)
      }
    }
  }

  private func environment(
    _ stage: AccountsStage, _ running: RunningAccounts, _ language: Language
  ) async throws -> [String: String] {
    let own = [
      "ACCOUNTS_URL": "https://localhost:\(running.address.port)", "ACCOUNTS_TOKEN": stage.tokens.shop,
      "CLIENT_ID": AccountsStage.web, "REDIRECT_URI": Self.redirectURI,
      "APPLE_AUTHORIZE": stage.authorizationURL,
    ]
    return own.merging(
      try await language.trusting(stage.files.path + "/certificate.pem", in: stage.files)
    ) { first, _ in first }
  }

  /// What speaks plain HTTP on the same machine, and TLS to the program: as a sidecar does.
  @Loop
  private final class Door {
    /// What becomes of a request in place of its answer.
    enum Trouble {
      /// It is answered, and the connection breaks.
      case lost
      /// It is one too many.
      case limited
      /// Nobody is there who could answer.
      case unavailable
      /// The same, for a day.
      case limitedForADay, unavailableForADay
    }

    /// What becomes of the next requests.
    var troubles: [Trouble] = []
    /// The keys of those that were made.
    private(set) var keys: [String] = []
    private(set) var address = ""
    private var serving: Task<Void, Never>?

    init(to origin: String, _ stage: AccountsStage) throws {
      let server = try HTTPServer(.plainOnLoopback) { [weak self] request in
        let trouble = self?.next(request)
        switch trouble {
        case .limited: return HTTPResponse(status: 429, headers: [("Retry-After", "0")])
        case .unavailable: return HTTPResponse(status: 503, headers: [("Retry-After", "0")])
        case .limitedForADay: return HTTPResponse(status: 429, headers: [("Retry-After", "86400")])
        case .unavailableForADay: return HTTPResponse(status: 503, headers: [("Retry-After", "86400")])
        case .lost, nil: break
        }
        guard case .complete = await request.readBody(upTo: 65_536) else { return HTTPResponse(status: 400) }
        let body = request.withBody { body in unsafe body.withUnsafeBytes { unsafe [UInt8]($0) } }
        let headers = ["Authorization", "Content-Type", "Idempotency-Key"].compactMap { name in
          request.header(name).map { (name: name, value: $0) }
        }
        do {
          let answer = try await stage.forward(body, to: origin + request.path, headers)
          return trouble == nil ? answer : HTTPResponse(status: 200, body: .stream { _ in throw CancellationError() })
        } catch {
          return .text("\(error)\n", status: 502)
        }
      }
      address = "http://\(server.address)"
      serving = Task(executorPreference: Loop.executor) { await server.run() }
    }

    func close() { serving?.cancel() }

    private func next(_ request: HTTPRequest) -> Trouble? {
      keys.append(request.header("Idempotency-Key") ?? "")
      return troubles.isEmpty ? nil : troubles.removeFirst()
    }
  }

  /// Runs an example: `browse` makes of the address that it prints the form that Apple's page posts.
  private func run(
    _ language: Language, _ environment: [String: String], _ browse: @Loop (String) async throws -> String
  ) async throws -> (end: RunningProgram.End, last: Substring, errors: String) {
    try await RunningProgram.run(path: language.running[0], Array(language.running.dropFirst()), environment) {
      program in
      let form = try await browse(try await program.outputLine(with: "client_id="))
      try program.write(form + "\n")
      program.endInput()
      let end = try await program.untilEnd()
      return (end, program.output.split(separator: "\n").last ?? "", program.errors)
    }
  }
}
