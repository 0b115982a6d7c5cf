import EventLoop
import Testing

@testable import HTTPServer

/// What a handler may say in an answer's head, and what only the server may.
@Suite struct ResponseHeadTests {
  @Loop private static func write(_ name: String) {
    var bytes: [UInt8] = []
    ResponseHead.append(
      HTTPResponse(status: 200, headers: [(name, "x")]), delimiter: .length(0), keepsAlive: true, isHTTP11: true,
      to: &bytes)
  }

  @Test func fieldsOfTheServersOwnTrap() async {
    await #expect(processExitsWith: .failure) { await ResponseHeadTests.write("content-LENGTH") }
    await #expect(processExitsWith: .failure) { await ResponseHeadTests.write("Transfer-Encoding") }
    await #expect(processExitsWith: .failure) { await ResponseHeadTests.write("Connection") }
    await #expect(processExitsWith: .failure) { await ResponseHeadTests.write("Date") }
  }

  @Loop
  @Test(arguments: ["Content-Lengtx", "Transfer-Encodinx", "Connectiox", "Datx", "Content-Type", ""])
  func othersDoNot(_ name: String) { Self.write(name) }
}
