import EventLoop
import Glibc
import HTTPServer

/// Answers as Apple does, but each time after a pause: a revocation with 200; whoever validates a token is told that it is no
/// good, or with `good` behind the pause that it is; and the teams of an app that is transferred get a token of an hour, a
/// transfer identifier for each subject, and somebody for each of those. Arguments: the pause in milliseconds. Prints the
/// address, and serves it until it is killed.
///
/// `/counts` says at once how often it was asked about users who move, about how many people, and in how many seconds;
/// `/reset` begins to count anew.
@main struct SlowApple {
  static func main() {
    exit(
      Loop.run {
        let arguments = CommandLine.arguments.dropFirst()
        let pause = Duration.milliseconds(arguments.first.flatMap { Int($0) } ?? 50)
        let isGood = arguments.contains("good")
        let questions = Questions()
        do {
          let server = try HTTPServer(
            HTTPServerConfiguration(
              address: .loopback(port: 0), tls: nil,
              limits: HTTPServerLimits(
                head: 16384, fields: 64, body: 65536, connections: 4096, connectionsPerAddress: 4096),
              deadlines: HTTPServerDeadlines(
                handshake: .seconds(5), head: .seconds(10), body: .seconds(10), idle: .seconds(60),
                request: .seconds(30)),
              sharesPort: false)
          ) { request in
            if request.path == "/reset" { questions.reset() }
            if request.path == "/counts" || request.path == "/reset" { return Self.json(questions.counts) }
            guard case .complete = await request.readBody(upTo: 65536) else { return HTTPResponse(status: 400) }
            let body = request.withBody { body in
              unsafe body.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
            }
            let answer = request.path == "/auth/usermigrationinfo" ? questions.answer(body) : nil
            // What it is there for: an answer that takes its time.
            do { try await Loop.sleep(for: pause) } catch { return HTTPResponse(status: 503) }
            if request.path == "/auth/revoke" { return HTTPResponse(status: 200) }
            if let answer { return Self.json(answer) }
            if isGood || body.contains("grant_type=client_credentials") {
              return Self.json(#"{"access_token":"access","token_type":"Bearer","expires_in":3600}"#)
            }
            return HTTPResponse(status: 400, body: .bytes(Array(#"{"error":"invalid_grant"}"#.utf8)))
          }
          print(server.address)
          fflush(nil)
          await server.run()
          return 0
        } catch {
          print(error)
          return 1
        }
      })
  }

  private static func json(_ text: String) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: [("Content-Type", "application/json")], body: .bytes(Array(text.utf8)))
  }
}
