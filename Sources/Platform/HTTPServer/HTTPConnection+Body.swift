import EventLoop

/// The body, for the handler through its request.
extension HTTPConnection {
  /// What can be said of the body without waiting for more of it.
  func readBodyAtOnce(limit: Int) -> HTTPRequest.BodyResult? {
    bodyAsked = true
    switch reader.readBody(limit: limit) {
    case .incomplete: return nil
    case .complete: return .complete
    case .refused(let refusal):
      server.statistics.refused += 1
      return .refused(refusal)
    }
  }

  /// Waits for the rest of the body.
  func readBody(limit: Int) async -> HTTPRequest.BodyResult {
    enter(.body, until: min(Loop.now + deadlines.body, requestEnd))
    defer { enter(.handling, until: requestEnd) }
    do throws(Transport.Failure) {
      if reader.head.expectsContinue, !toldToGoOn {
        toldToGoOn = true
        // Where the peer does not take it in time, part of it may have gone, and no answer can follow.
        do throws(Transport.Failure) { try await transport.write(Self.goOn) } catch { return .lost }
      }
      while true {
        try await receive()
        if let result = readBodyAtOnce(limit: limit) { return result }
      }
    } catch {
      guard Loop.now < requestEnd, isOnlyLate(error) else { return .lost }
      server.statistics.refused += 1
      return .refused(MessageRefusal(status: 408, reason: "the request's body took too long"))
    }
  }

  private static let goOn = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
}
