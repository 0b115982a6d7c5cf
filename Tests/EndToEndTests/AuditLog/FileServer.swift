import EventLoop
import Foundation
import Glibc
import TestSupport
import Testing

/// A server of somebody else's that serves a directory's files, and knows nothing of logs.
enum FileServer {
  /// The one in Python's library.
  case python
  /// nginx.
  case nginx

  private static let nginxProgram = "/usr/sbin/nginx"

  /// Skips a test, visibly, where nginx is not there.
  static var nginxIsThere: ConditionTrait {
    .enabled("needs Debian's nginx") { FileManager.default.isExecutableFile(atPath: nginxProgram) }
  }

  /// Runs `body` with the address under which a directory is served.
  @Loop
  func serve(_ directory: String, _ body: @Loop (String) async throws -> Void) async throws {
    switch self {
    case .python:
      let words = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", directory]
      try await RunningProgram.run(path: Python.interpreter, words) { program in
        let line = try await program.outputLine(with: "Serving HTTP on 127.0.0.1 port ")
        let port = try #require(line.split(separator: " ").compactMap { UInt16($0) }.first, "\(line)")
        try await body("http://127.0.0.1:\(port)")
      }
    case .nginx:
      let address = try SocketAddress.free()
      let files = TemporaryDirectory()
      let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      let configuration = files.write(
        "nginx.conf",
        """
        daemon off; master_process off; pid nginx.pid; error_log stderr notice;
        events {}
        http {
          access_log off;
          \(folders.map { "\($0)_temp_path \($0);" }.joined(separator: " "))
          server { listen \(address); root \(directory); }
        }

        """)
      try await RunningProgram.run(path: Self.nginxProgram, ["-p", files.path, "-c", configuration]) { program in
        // It listens before it says so.
        _ = try await program.line(with: "using the", "event method")
        try await body("http://\(address)")
      }
    }
  }
}
