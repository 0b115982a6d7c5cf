import Cryptography
import EventLoop
import HTTPServer

extension SimulatedApple {
  /// What Apple answers, and what answers for the simulator itself below `/simulator/`.
  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let path = request.path
    if path.hasPrefix("/simulator/") { return await obey(request) }
    switch path {
    case "/auth/keys": break
    case "/auth/token": return await tokenResponse(request)
    case "/auth/usermigrationinfo": return await migrationResponse(request)
    case "/auth/revoke": return await revocationResponse(request)
    case "/auth/authorize", "/account":
      // What another site's page has a browser send is not what the person wants.
      if request.hasMethod("POST"), request.isFromElsewhere { return HTTPResponse(status: 403) }
      return await path == "/account" ? accountResponse(request) : authorizationResponse(request)
    default: return .text("there is nothing at this path\n", status: 404)
    }
    guard request.hasMethod("GET") else {
      return HTTPResponse(status: 405, headers: [("Allow", "GET")])
    }
    return await keysResponse()
  }

  private func keysResponse() async -> HTTPResponse {
    keysAsked += 1
    do {
      if keysDelay > .zero { try await Loop.sleep(for: keysDelay) }
      guard let answer = try ring.answer(keysAnswer, shift: keysAsked) else {
        // Longer than anyone waits; the end of the server ends it.
        try await Loop.sleep(for: .seconds(3600))
        return HTTPResponse(status: 503)
      }
      var headers = [(name: "Content-Type", value: answer.type), (name: "Cache-Control", value: "no-store")]
      if answer.status == 302 { headers.append((name: "Location", value: "/auth/keys")) }
      let body = [UInt8](answer.body.utf8)
      return HTTPResponse(
        status: answer.status, headers: headers, body: keysAnswer == .drip ? .dripping(body) : .bytes(body))
    } catch {
      // The server ends, or OpenSSL does not give a key's numbers: either way there is no answer to be had.
      return HTTPResponse(status: 503)
    }
  }
}

extension HTTPResponse.Body {
  /// A byte, then a rest, and so on.
  fileprivate static func dripping(_ bytes: [UInt8]) -> HTTPResponse.Body {
    .stream { writer in
      for byte in bytes {
        try await writer.write([byte])
        try await Loop.sleep(for: .milliseconds(100))
      }
    }
  }
}
