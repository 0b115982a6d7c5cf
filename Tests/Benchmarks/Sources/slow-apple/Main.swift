import EventLoop
import Glibc
import HTTPServer

/// Answers as Apple does, but each time after a pause: a revocation with 200, and whoever validates a token is told that
/// it is no good, or with `good` behind the pause that it is. Arguments: the pause in milliseconds. Prints the address, and
/// serves it until it is killed.
@main struct SlowApple {
  static func main() {
    exit(
      Loop.run {
        let arguments = CommandLine.arguments.dropFirst()
        let pause = Duration.milliseconds(arguments.first.flatMap { Int($0) } ?? 50)
        let answer =
          arguments.contains("good")
          ? (status: 200, body: #"{"access_token":"access","token_type":"Bearer","expires_in":3600}"#)
          : (status: 400, body: #"{"error":"invalid_grant"}"#)
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
            guard case .complete = await request.readBody(upTo: 65536) else { return HTTPResponse(status: 400) }
            // What it is there for: an answer that takes its time.
            do { try await Loop.sleep(for: pause) } catch { return HTTPResponse(status: 503) }
            if request.path == "/auth/revoke" { return HTTPResponse(status: 200) }
            return HTTPResponse(status: answer.status, body: .bytes(Array(answer.body.utf8)))
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
}
