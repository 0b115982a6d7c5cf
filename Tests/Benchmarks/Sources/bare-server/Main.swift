import EventLoop
import Glibc
import HTTPServer

/// The server alone: every request is answered with 200 and nothing else. Arguments: certificate, key.
@main struct BareServer {
  static func main() {
    let status = Loop.run {
      let arguments = CommandLine.arguments
      do {
        let server = try HTTPServer(
          HTTPServerConfiguration(
            address: .loopback(port: 0),
            tls: TLSServerConfiguration(certificateFile: arguments[1], privateKeyFile: arguments[2]),
            limits: HTTPServerLimits(
              head: 16384, fields: 64, body: 65536, connections: 4096, connectionsPerAddress: 4096),
            deadlines: HTTPServerDeadlines(
              handshake: .seconds(5), head: .seconds(10), body: .seconds(10), idle: .seconds(60), request: .seconds(30)),
            sharesPort: false)
        ) { request in
          switch await request.readBody(upTo: 65536) {
          case .complete: HTTPResponse(status: 200)
          default: HTTPResponse(status: 400)
          }
        }
        print("listening on \(server.address)")
        fflush(nil)
        await server.run()
        return 0
      } catch {
        print(error)
        return 1
      }
    }
    _ = status
  }
}
