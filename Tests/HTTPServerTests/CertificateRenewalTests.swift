import Cryptography
import EventLoop
import Foundation
import TestSupport
import Testing

@testable import HTTPServer

/// A certificate that is replaced on disk while the server runs.
@Suite(.serialized, .timeLimit(.minutes(30))) struct CertificateRenewalTests {
  private let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

  /// How operators and their tools replace a file. Each puts a pair where the configuration of `Place` looks for it.
  enum Way: CaseIterable {
    /// The files are written over where they are.
    case writtenOver
    /// Other files are renamed over them.
    case renamedOver
    /// Each is a symbolic link that points elsewhere then, as certbot does it.
    case links
    /// They lie behind a link to a directory, which is replaced by a rename, as Kubernetes does it.
    case directoryLink
  }

  /// A directory in which pairs are put in one of those ways.
  private final class Place {
    let files: TLSServerConfiguration
    private let directory = TemporaryDirectory()
    private let way: Way
    private var count = 0

    init(_ way: Way, _ first: SelfSignedCertificate) throws {
      self.way = way
      let path = directory.path + (way == .directoryLink ? "/..data" : "")
      files = TLSServerConfiguration(certificateFile: path + "/certificate.pem", privateKeyFile: path + "/key.pem")
      try put(first)
    }

    func put(_ pair: SelfSignedCertificate) throws {
      if way == .directoryLink {
        count += 1
        let new = directory.path + "/\(count)"
        try FileManager.default.createDirectory(atPath: new, withIntermediateDirectories: false)
        try write(pair.certificatePEM, new + "/certificate.pem")
        try write(pair.privateKeyPEM, new + "/key.pem")
        try link(new, directory.path + "/..data")
      } else {
        try put(key: pair)
        try put(certificate: pair)
      }
    }

    func put(key pair: SelfSignedCertificate) throws { try put(pair.privateKeyPEM, files.privateKeyFile) }
    func put(certificate pair: SelfSignedCertificate) throws { try put(pair.certificatePEM, files.certificateFile) }

    func put(_ text: String, _ path: String) throws {
      count += 1
      let other = path + ".\(count)"
      switch way {
      case .writtenOver, .directoryLink: try write(text, path)
      case .renamedOver:
        try write(text, other)
        try move(other, path)
      case .links:
        try write(text, other)
        try link(other, path)
      }
    }

    /// In place, without a rename.
    private func write(_ text: String, _ path: String) throws {
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }

    private func link(_ target: String, _ path: String) throws {
      try FileManager.default.createSymbolicLink(atPath: path + ".new", withDestinationPath: target)
      try move(path + ".new", path)
    }

    private func move(_ from: String, _ to: String) throws {
      let result = unsafe rename(from, to)
      try #require(result == 0)
    }
  }

  @Loop
  private func presented(by server: TestServer) async throws -> String {
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    try await client.send(request)
    #expect(try await client.answer().status == 200)
    return client.certificatePEM
  }

  @Loop
  @Test(arguments: Way.allCases) func servesNewHandshakesAndDropsNoConnection(_ way: Way) async throws {
    let (first, second) = (try TestCertificate.another(), try TestCertificate.another())
    let place = try Place(way, first)
    let server = try TestServer(tls: place.files, handler: echo)
    #expect(server.server.renewCertificate(insisting: false) == .unchanged)
    let (open, half) = (try TLSClient(server.server.address), try TLSClient(server.server.address))
    try await open.handshake()
    let flight = try await half.handshakeButTheLastFlight()
    try place.put(second)
    #expect(server.server.renewCertificate(insisting: false) == .renewed)
    #expect(server.server.renewCertificate(insisting: false) == .unchanged)
    #expect(try await presented(by: server) == second.certificatePEM)
    try await half.raw.send(flight)
    for client in [open, half] {
      try await client.send(request)
      #expect(try await client.answer().status == 200)
      #expect(client.certificatePEM == first.certificatePEM)
    }
    await server.close()
  }

  /// Between the steps the pair is none; whoever looks then says nothing, and the next look finds the new pair.
  @Loop
  @Test(arguments: [true, false]) func isReplacedInTwoSteps(_ keyFirst: Bool) async throws {
    let (first, second) = (try TestCertificate.another(), try TestCertificate.another())
    let place = try Place(.renamedOver, first)
    let server = try TestServer(tls: place.files, handler: echo)
    if keyFirst { try place.put(key: second) } else { try place.put(certificate: second) }
    #expect(server.server.renewCertificate(insisting: false) == .unsettled)
    #expect(try await presented(by: server) == first.certificatePEM)
    if keyFirst { try place.put(certificate: second) } else { try place.put(key: second) }
    #expect(server.server.renewCertificate(insisting: false) == .renewed)
    #expect(try await presented(by: server) == second.certificatePEM)
    await server.close()
  }

  /// The same where the new key is of another kind, as when RSA is left for P-256: at no moment is there no pair.
  @Loop
  @Test(arguments: [true, false], [true, false])
  func isReplacedByOneOfAnotherKindInTwoSteps(_ keyFirst: Bool, _ isToRSA: Bool) async throws {
    let directory = TemporaryDirectory()
    let made = try await TestCertificate.ofRSA(in: directory)
    let other = try TestCertificate.another()
    let p256 = (certificate: other.certificatePEM, key: other.privateKeyPEM)
    let (first, second) = isToRSA ? (p256, made) : (made, p256)
    let files = TLSServerConfiguration(
      certificateFile: directory.write("certificate.pem", first.certificate),
      privateKeyFile: directory.write("key.pem", first.key))
    let server = try TestServer(tls: files, handler: echo)
    let steps = [("key.pem", second.key), ("certificate.pem", second.certificate)]
    for (index, step) in (keyFirst ? steps : steps.reversed()).enumerated() {
      _ = directory.write(step.0, step.1)
      #expect(server.server.renewCertificate(insisting: false) == (index == 0 ? .unsettled : .renewed))
      #expect(try await presented(by: server) == (index == 0 ? first : second).certificate)
    }
    await server.close()
  }

  enum Damage: CaseIterable {
    case otherKey, noKey, noCertificate, halfACertificate, keyIsGone, keyIsADirectory
  }

  @Loop
  @Test(arguments: Damage.allCases) func aPairThatCannotBeUsedIsSaidOnceAndLeavesTheOldOne(_ damage: Damage)
    async throws
  {
    let (first, second) = (try TestCertificate.another(), try TestCertificate.another())
    let place = try Place(.writtenOver, first)
    let server = try TestServer(tls: place.files, handler: echo)
    var code = HTTPServerError.Code.privateKey
    switch damage {
    case .otherKey: try place.put(key: second)
    case .noKey: try place.put("", place.files.privateKeyFile)
    case .noCertificate:
      try place.put("no certificate", place.files.certificateFile)
      code = .certificate
    case .halfACertificate:
      try place.put(String(second.certificatePEM.prefix(300)), place.files.certificateFile)
      code = .certificate
    case .keyIsGone: try FileManager.default.removeItem(atPath: place.files.privateKeyFile)
    case .keyIsADirectory:
      try FileManager.default.removeItem(atPath: place.files.privateKeyFile)
      try FileManager.default.createDirectory(atPath: place.files.privateKeyFile, withIntermediateDirectories: false)
    }
    func look(insisting: Bool = false) -> CertificateRenewal {
      server.server.renewCertificate(insisting: insisting)
    }
    #expect(look() == .unsettled)
    guard case .failed(let error) = look() else {
      Issue.record("not said")
      return
    }
    #expect(error.code == code, "\(error)")
    #expect(look() == .unchanged)
    #expect(look(insisting: true) == .failed(error), "who asks is told")
    #expect(look() == .unchanged)
    #expect(try await presented(by: server) == first.certificatePEM)
    // Back to what is in use, and to something new.
    if damage == .keyIsADirectory { try FileManager.default.removeItem(atPath: place.files.privateKeyFile) }
    try place.put(first)
    #expect(look() == .unchanged)
    try place.put(second)
    #expect(look() == .renewed)
    #expect(try await presented(by: server) == second.certificatePEM)
    await server.close()
  }

  /// A session does not outlive the certificate under which it was made, nor an hour.
  @Loop
  @Test(arguments: [TLSClient.Version.tls12, .tls13]) func endsSessions(_ version: TLSClient.Version) async throws {
    let place = try Place(.renamedOver, try TestCertificate.another())
    let server = try TestServer(tls: place.files, handler: echo)
    func session(resuming session: TLSSession?) async throws -> (TLSSession?, isResumed: Bool) {
      let client = try TLSClient(server.server.address, version: version, resuming: session)
      try await client.handshake()
      try await client.send(request)
      #expect(try await client.answer().status == 200)
      // An end without a word makes the client forget the session.
      try await client.endWriting()
      return (client.session, client.isResumed)
    }
    let (first, _) = try await session(resuming: nil)
    let (second, isResumed) = try await session(resuming: first)
    #expect(isResumed)
    try place.put(try TestCertificate.another())
    let start = MonotonicTime.now
    #expect(server.server.renewCertificate(insisting: false) == .renewed)
    let (third, afterRenewal) = try await session(resuming: second)
    #expect(!afterRenewal)
    let certificate = try #require(server.server.certificate)
    _ = certificate.contextForHandshake(at: start + .seconds(3600))
    let (fourth, beforeTheHour) = try await session(resuming: third)
    #expect(beforeTheHour)
    // Nobody has connected meanwhile.
    #expect(certificate.look(insisting: false, at: .now + .seconds(3601)) == .unchanged)
    let (_, afterTheHour) = try await session(resuming: fourth)
    #expect(!afterTheHour)
    await server.close()
  }

  @Loop
  @Test(arguments: Way.allCases) func isReplacedAHundredTimesUnderLoadWithoutAFailedRequest(_ way: Way) async throws {
    let pairs = try (0..<2).map { _ in try TestCertificate.another() }
    let place = try Place(way, pairs[0])
    let server = try TestServer(tls: place.files, handler: echo)
    let load = Load()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<4 {
        group.addTask(executorPreference: Loop.executor) { [request] in
          try await load.run(server.server.address, isLasting: index < 2, request)
        }
      }
      for count in 1...25 {
        let answered = load.answered
        if count % 2 == 0 || way == .directoryLink {
          try place.put(pairs[count % 2])
        } else {
          try place.put(key: pairs[count % 2])
          #expect(server.server.renewCertificate(insisting: false) == .unsettled)
          while load.answered < answered + 4 { await Loop.nextTurn() }
          try place.put(certificate: pairs[count % 2])
        }
        #expect(server.server.renewCertificate(insisting: false) == .renewed)
        while load.answered < answered + 8 { await Loop.nextTurn() }
      }
      load.isOver = true
      try await group.waitForAll()
    }
    #expect(load.answered == server.statistics.requests)
    #expect(server.statistics.handshakesFailed == 0)
    await server.close()
  }

  /// Clients that ask again and again until it is over.
  @Loop
  private final class Load {
    var isOver = false
    private(set) var answered = 0

    nonisolated init() {}

    func run(_ server: SocketAddress, isLasting: Bool, _ request: String) async throws {
      var client: TLSClient?
      while !isOver {
        let asked = try client ?? TLSClient(server)
        if client == nil { try await asked.handshake() }
        try await asked.send(request)
        try #require(try await asked.answer().status == 200)
        answered += 1
        client = isLasting ? asked : nil
        if !isLasting { asked.raw.close() }
      }
    }
  }
}
