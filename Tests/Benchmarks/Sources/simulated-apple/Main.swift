import AccountEvents
import AppleSimulator
import EventLoop
import Glibc
import HTTPClient

/// Signs notifications ahead of time, so that signing takes nothing from what is measured, then serves Apple's keys.
///
/// Arguments: how many, for which audience, and a folder. The folder gets three files with one body a line: `accepted`,
/// `forged`, `unknown-key`. Prints the address of the keys endpoint and serves it until it is killed.
@main struct SimulatedAppleProgram {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let count = Int(arguments[1]) else { exit(2) }
    let (audience, folder) = (arguments[2], arguments[3])
    let status = Loop.run {
      do {
        let apple = try SimulatedApple(
          ring: KeyRing(generating: 3), issuer: AppleNotification.appleIssuer, trustAnchors: .system,
          clock: { Timestamp.now })
        let server = try SimulatedAppleServer(apple, port: 0, tls: nil)
        for (name, faults) in [("accepted", []), ("forged", [.forgedSignature]), ("unknown-key", [.unknownKey])]
          as [(String, [Fault])]
        {
          try write(count, with: faults, by: apple, for: audience, to: "\(folder)/\(name)")
        }
        print(server.keysURL)
        fflush(nil)
        await server.run()
        return 0
      } catch {
        print(error)
        return 1
      }
    }
    exit(status)
  }

  @Loop static func write(
    _ count: Int, with faults: [Fault], by apple: SimulatedApple, for audience: String, to path: String
  ) throws {
    guard let file = unsafe fopen(path, "w") else { throw SystemError.current }
    defer { unsafe fclose(file) }
    for index in 0..<count {
      let type = NotificationType.allCases[index % NotificationType.allCases.count]
      let body = try apple.sign(type, of: Person(named: "person \(index)"), for: audience, faults: faults).body
      _ = unsafe fwrite(body + [UInt8(ascii: "\n")], 1, body.count + 1, file)
    }
  }
}
