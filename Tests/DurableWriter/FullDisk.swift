import AccountEvents
import AccountServices
import EventLoop
import Glibc
import Telemetry

/// A spool on a disk that is full when it starts, for a disk of a few megabytes and few files.
struct FullDisk {
  /// What is missing.
  enum Fault {
    /// Room for the names of files.
    case names
    /// Room; and a page that is only read when all is checked is damaged.
    case roomThenDamage
    /// Room; and the file's list of tables is damaged.
    case roomAndSchema
    /// Room; and once there is some, the file is one of a later version's for a while.
    case roomThenVersion
  }

  let directory: String
  private var balloon: String { "\(directory)-balloon" }
  private static let pageSize = 16_384

  /// Says what becomes of the spool.
  @Loop
  func start(_ fault: Fault) async -> Int32 {
    do {
      var spool = try await open()
      for number in 0..<3 { _ = try await spool.insert(DurableWriter.record(number, size: 100_000)) }
      await spool.close()
      switch fault {
      case .names: useUpNames()
      case .roomThenDamage:
        damage(page: pages() - 1, at: 0)
        useUpRoom()
      case .roomAndSchema:
        damage(page: 0, at: 100)
        useUpRoom()
      case .roomThenVersion: useUpRoom()
      }
      spool = try await open()
      let held = Set(try await spool.heldRecords().map(\.lane)).count
      DurableWriter.say("waits with \(spool.depth) of \(held) accounts, set aside \(spool.setAside)")
      if fault == .roomThenVersion { damage(page: 0, at: 60, with: [0, 0, 0, 3]) }
      unsafe unlink(balloon)
      for number in 0..<1000 { unsafe unlink("\(balloon)-\(number)") }
      if fault == .roomThenVersion {
        // The spool tries by itself, and tells nobody but those who ask.
        while spool.failureToOpen == nil { try await Loop.sleep(for: .milliseconds(20)) }
        DurableWriter.say("cannot be opened: \(spool.failureToOpen.map { "\($0.code)" } ?? "")")
        damage(page: 0, at: 60, with: [0, 0, 0, 2])
      }
      // As above.
      while !spool.takesRecords { try await Loop.sleep(for: .milliseconds(20)) }
      DurableWriter.say("open again with \(spool.depth), set aside \(spool.setAside)")
      _ = try await spool.insert(DurableWriter.record(3, size: 10_000))
      let numbers = try await spool.read(after: 0, limit: 10).map(\.sequence)
      DurableWriter.say("holds \(numbers)")
      await spool.close()
      return 0
    } catch {
      DurableWriter.complain("\(error)")
    }
  }

  @Loop
  private func open() async throws(SpoolError) -> Spool {
    try await Spool.open(
      directory: directory, limit: 1 << 30, now: { .now }, registry: MetricsRegistry(),
      logger: Logger(level: .error, format: .text))
  }

  private func useUpNames() {
    for number in 0..<1000 {
      let file = unsafe Glibc.open("\(balloon)-\(number)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      if file < 0 { return }
      close(file)
    }
    DurableWriter.complain("the disk takes any number of files")
  }

  /// Leaves not even a byte, nor the reserve.
  private func useUpRoom() {
    unsafe unlink("\(directory)/reserve")
    let file = unsafe Glibc.open(balloon, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    let air = [UInt8](repeating: 1, count: 512)
    while unsafe write(file, air, air.count) > 0 {}
    close(file)
  }

  private func pages() -> Int {
    var status = stat()
    guard unsafe stat("\(directory)/spool.sqlite", &status) == 0 else { DurableWriter.complain("no database") }
    return Int(status.st_size) / Self.pageSize
  }

  private func damage(page: Int, at offset: Int, with noise: [UInt8] = Array(repeating: 0xff, count: 64)) {
    let file = unsafe Glibc.open("\(directory)/spool.sqlite", O_WRONLY | O_CLOEXEC)
    guard unsafe pwrite(file, noise, noise.count, off_t(page * Self.pageSize + offset)) == noise.count
    else {
      DurableWriter.complain("the database cannot be written")
    }
    close(file)
  }
}
