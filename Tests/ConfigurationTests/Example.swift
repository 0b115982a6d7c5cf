import Configuration
import EventLoop
import TestSupport

/// A component with a setting of every type.
struct Example: Configurable, Equatable {
  enum Level: String, CaseIterable { case low, high }

  var name: String
  var listen: SocketAddress
  var workers: Int
  var isFast: Bool
  var deadline: Duration
  var size: Int
  var level: Level
  var address: String?
  var data: String
  var tags: [String]

  init(reading settings: inout Settings) {
    name = settings.read("main.name", .text(1...20), "Its name.")
    listen = settings.read("main.listen", .socketAddress, default: .loopback(port: 80), "Where it listens.")
    workers = settings.read("main.workers", .integer(1...64, unit: "threads"), default: 4, "How many work.")
    isFast = settings.read("main.fast", .boolean, default: false, "Whether it hurries.")
    deadline = settings.read("main.deadline", .duration(.zero ... .seconds(60)), default: .seconds(5), "How long.")
    size = settings.read("main.max-size", .byteSize(1...(1 << 20)), default: 65_536, "How much.")
    level = settings.read("main.level", .choice(Level.self), default: .low, "How loud.")
    address = settings.readIfPresent("main.address", .url, "Whom to ask; nobody if not set.")
    data = settings.read("main.data", .path, default: "data", "Where it keeps things.")
    tags = settings.read("main.tags", .list(of: .text(1...9), count: 0...3), default: [], "What it is | about.")
  }
}

/// A component with files, secrets and maps.
struct Vault: Configurable {
  var certificate: String?
  var key: String?
  var password: Secret?
  var limits: [(key: String, value: Int)]
  var options: Properties

  init(reading settings: inout Settings) {
    certificate = settings.readIfPresent("vault.certificate", .file(), "Shown to everybody.")
    key = settings.readIfPresent("vault.private-key", .file(isPrivate: true), "Shown to nobody.")
    password = settings.readIfPresent("vault.password", .secret, "What opens it.")
    limits = settings.readEach("limits", room, named: "ROOM") { settings, path, _ in
      settings.read("\(path).most", .integer(0...9), "How many fit in.")
    }
    options = settings.readProperties(
      "options", isSecret: { $0.hasSuffix("password") },
      fault: { name, _ in name == "bad" ? "no such property" : nil }, "Somebody else's.")
  }
}

/// A component with a group for each of some keys in small letters, secrets in it.
struct House: Configurable {
  var doors: [(key: String, value: Door)]

  struct Door {
    var secret: Secret?
    var width: Int
  }

  init(reading settings: inout Settings) {
    doors = settings.readEach("doors", door, named: "DOOR") { settings, path, _ in
      Door(
        secret: settings.readIfPresent("\(path).pass-word", .secret, "What opens it."),
        width: settings.read("\(path).width", .integer(0...9), default: 1, "How much goes through || in."))
    }
  }
}

extension SettingType where Value == String {
  /// A type of the tests' own.
  static var url: SettingType {
    SettingType(
      "URL", expected: "an https URL", standIn: "", show: { $0 },
      parse: { $0.hasPrefix("https://") && $0.utf8.count > 8 ? $0 : nil })
  }
}

private let room = SettingType(
  "room", expected: "a room (capital letters)", standIn: "", show: { $0 },
  parse: { text in
    !text.isEmpty && text.utf8.allSatisfy { (0x41...0x5a).contains($0) } ? text : nil
  })

private let door = SettingType(
  "door", expected: "a door (small letters and hyphens)", standIn: "", show: { $0 },
  parse: { text in
    !text.isEmpty && text.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x2d } ? text : nil
  })

let schema = ConfigurationSchema(prefix: "TEST", defaultFile: "/nonexistent/test.yaml")
  .adding("example", Example.self)
let houseSchema = ConfigurationSchema(prefix: "TEST", defaultFile: "/nonexistent/test.yaml").adding("house", House.self)
let vaultSchema = ConfigurationSchema(prefix: "TEST", defaultFile: "/nonexistent/test.yaml").adding("vault", Vault.self)

extension ConfigurationSchema {
  /// The texts of all faults, the directory's name left out.
  func faults<C: Configurable>(
    _ type: C.Type, file: String = "", environment: [String: String] = [:], overrides: [String] = []
  ) -> [String] {
    faults(type, bytes: Array(file.utf8), environment: environment, overrides: overrides)
  }

  func faults<C: Configurable>(
    _ type: C.Type, bytes: [UInt8], environment: [String: String] = [:], overrides: [String] = []
  ) -> [String] {
    let directory = TemporaryDirectory()
    let path = directory.write("t.yaml", bytes)
    do {
      let sources = ConfigurationSources(file: path, environment: environment, overrides: overrides)
      _ = try load(type, from: sources)
      return []
    } catch {
      return error.description.split(separator: "\n").map { line in
        line.split(separator: directory.path + "/", omittingEmptySubsequences: false).joined()
      }
    }
  }
}
