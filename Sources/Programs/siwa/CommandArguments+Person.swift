import Configuration
import Glibc

extension CommandArguments {
  /// Who decides: as the command line says, or the environment, or else the system of who runs the process.
  mutating func readPerson() -> String {
    let said = readIfPresent(
      "--by", "NAME", .text(1...100),
      "Who decides it, which is kept; without it, the variable USER says, or else the user that runs this.")
    let user = ConfigurationSources.processEnvironment["USER"] ?? ""
    return said ?? (user.isEmpty ? Self.processUser : user)
  }

  /// The name of the user that runs this process, or its number where it has none, as in many containers.
  private static var processUser: String {
    let user = geteuid()
    guard let entry = unsafe getpwuid(user), let name = unsafe entry.pointee.pw_name else { return "uid \(user)" }
    return unsafe String(cString: name)
  }
}
