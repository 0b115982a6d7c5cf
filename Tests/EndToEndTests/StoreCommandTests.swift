import EventLoop
import Glibc
import TestSupport
import Testing

/// `siwa store`, from the key to the backup.
@Loop @Suite(.serialized) struct StoreCommandTests {
  private let files = TemporaryDirectory()
  private var environment: [String: String] {
    ["SIWA_STORE_SQLITE": files.path + "/store.sqlite", "SIWA_STORE_MASTER_KEY": files.path + "/master-key"]
  }

  private func siwa(
    _ words: String..., environment: [String: String]? = nil
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", ["store"] + words, environment ?? self.environment) { program in
      try await program.outcome()
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func makesKeepsAndCopiesAStore() async throws {
    let key = try await siwa("create-key", files.path + "/master-key")
    #expect(key.end == .exit(0) && key.errors == "")
    #expect(key.output.hasPrefix("master key ") && key.output.hasSuffix(" is in \(files.path)/master-key\n"))
    let again = try await siwa("create-key", files.path + "/master-key")
    #expect(again.end == .exit(1) && again.errors.contains("File exists"))

    let early = try await siwa("integrity")
    #expect(early.end == .exit(1) && early.errors.contains("`siwa store begin` makes it"), "\(early)")
    let none = try await siwa("migrate")
    #expect(none.end == .exit(1) && none.errors.contains("its volume may not be mounted"), "\(none)")
    let made = try await siwa("begin")
    let words = "the account store begins: \(files.path)/store.sqlite, on the file system that is mounted at /"
    #expect(made.end == .exit(0) && made.output.hasPrefix(words), "\(made)")
    let second = try await siwa("begin")
    #expect(second.end == .exit(1) && second.errors.contains("has begun there already"), "\(second)")
    let known = try await siwa("migrate")
    #expect(known.end == .exit(0) && known.output == "\(files.path)/store.sqlite is of version 10 already\n")

    let whole = try await siwa("integrity")
    #expect(whole.end == .exit(0) && whole.output.hasSuffix("\nWhole\n"), "\(whole)")
    let copy = try await siwa("backup", files.path + "/copy.sqlite")
    #expect(copy.end == .exit(0) && copy.output.hasPrefix("Store     \(files.path)/copy.sqlite\n"), "\(copy)")
    for name in ["master-key", "store.sqlite", "copy.sqlite"] {
      var status = stat()
      #expect(unsafe stat("\(files.path)/\(name)", &status) == 0 && status.st_mode & 0o777 == 0o600)
    }
    let restored = try await siwa("integrity", "--set", "store.sqlite=\(files.path)/copy.sqlite")
    #expect(restored.end == .exit(0) && restored.output.hasSuffix("\nWhole\n"), "\(restored)")
    #expect(try await siwa("backup", files.path + "/copy.sqlite").end == .exit(1), "nothing is replaced")
  }

  @Test(
    .timeLimit(.minutes(30)),
    arguments: [
      ["store", "create-key"], ["store", "create-key", "--hashing"], ["audit", "create-key", "example.com/log"],
    ])
  func aKeyThatCannotBeWrittenLeavesNoFile(words: [String]) async throws {
    // A file of any size is too large.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$@\""
    let failed = try await RunningProgram.finish(
      path: "/bin/bash", ["-c", script, "bash", RunningProgram.path(of: "siwa")] + words + [files.path + "/key"])
    #expect(failed.end == .exit(1) && failed.errors == "siwa: \(files.path)/key: File too large\n", "\(failed)")
    #expect(unsafe rmdir(files.path) == 0, "something was left behind")
  }

  @Test(.timeLimit(.minutes(30)))
  func aBackupWithoutRoomIsNoFaultOfTheStore() async throws {
    #expect(try await siwa("create-key", files.path + "/master-key").end == .exit(0))
    #expect(try await siwa("begin").end == .exit(0))
    let nowhere = try await siwa("backup", files.path + "/none/copy")
    #expect(nowhere.end == .exit(1) && nowhere.errors.hasPrefix("siwa: \(files.path)/none/copy: "), "\(nowhere)")
    #expect(nowhere.errors.hasSuffix(": No such file or directory\n"), "\(nowhere)")

    let folder = files.path + "/folder"
    #expect(unsafe mkdir(folder, 0o700) == 0)
    // A backup is larger than 16 KiB; so much are the store's shared memory and log not.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\""
    let words = [
      "store", "backup", folder + "/copy", "--set", "store.sqlite=\(files.path)/store.sqlite", "--set",
      "store.master-key=\(files.path)/master-key",
    ]
    let full = try await RunningProgram.finish(
      path: "/bin/bash", ["-c", script, "bash", RunningProgram.path(of: "siwa")] + words)
    #expect(full.end == .exit(1) && full.errors.hasPrefix("siwa: \(folder)/copy: "), "\(full)")
    #expect(unsafe rmdir(folder) == 0, "something was left behind")
  }

  @Test(.timeLimit(.minutes(30)))
  func replacesTheMasterKey() async throws {
    for name in ["master-key", "new-key"] {
      #expect(try await siwa("create-key", "\(files.path)/\(name)").end == .exit(0))
    }
    #expect(try await siwa("begin").end == .exit(0))
    let new = environment.merging(["SIWA_STORE_MASTER_KEY": files.path + "/new-key"]) { $1 }
    let unable = try await siwa("rotate-key", environment: new)
    #expect(unable.end == .exit(1) && unable.errors.contains("is wrapped with master key "), "\(unable)")
    let both = new.merging(["SIWA_STORE_FORMER_MASTER_KEY": files.path + "/master-key"]) { $1 }
    let rotated = try await siwa("rotate-key", environment: both)
    #expect(rotated.end == .exit(0) && rotated.output.hasSuffix("0 accounts were wrapped anew\n"), "\(rotated)")
    #expect(try await siwa("integrity", environment: new).end == .exit(0))
    #expect(try await siwa("integrity").end == .exit(1), "the old key opens nothing any more")
    let same = both.merging(["SIWA_STORE_FORMER_MASTER_KEY": files.path + "/new-key"]) { $1 }
    let refused = try await siwa("integrity", environment: same)
    #expect(refused.end == .exit(2) && refused.errors.contains("SIWA_STORE_FORMER_MASTER_KEY: "), "\(refused)")
  }

  @Test(.timeLimit(.minutes(30)))
  func replacesTheHashingKey() async throws {
    #expect(try await siwa("create-key", files.path + "/master-key").end == .exit(0))
    let made = try await siwa("create-key", "--hashing", files.path + "/hash-key")
    #expect(made.end == .exit(0) && made.output.hasPrefix("hashing key "), "\(made)")
    let id = made.output.dropFirst("hashing key ".count).prefix(16)
    #expect(try await siwa("begin").end == .exit(0))

    let nothing = try await siwa("rotate-hash-key")
    #expect(nothing.end == .exit(1) && nothing.errors.contains("name the file of the new key"), "\(nothing)")
    let missing = try await siwa("rotate-hash-key", files.path + "/none")
    #expect(missing.end == .exit(2) && missing.errors.contains("/none cannot be read"), "\(missing)")
    let master = try await siwa("rotate-hash-key", files.path + "/master-key")
    #expect(master.end == .exit(1) && master.errors.contains("holds a master key"), "\(master)")
    for _ in 1...2 {
      let rotated = try await siwa("rotate-hash-key", files.path + "/hash-key")
      #expect(
        rotated.end == .exit(0) && rotated.output.contains("with hashing key \(id); 0 rows moved\nOutcomes name it"),
        "\(rotated)")
    }
    #expect(try await siwa("integrity").end == .exit(0))
  }

  @Test(.timeLimit(.minutes(30)))
  func refusesAnotherKeyAndAKeyThatOthersCanRead() async throws {
    #expect(try await siwa("create-key", files.path + "/master-key").end == .exit(0))
    #expect(try await siwa("begin").end == .exit(0))
    #expect(try await siwa("create-key", files.path + "/other-key").end == .exit(0))
    let other = try await siwa("integrity", "--set", "store.master-key=\(files.path)/other-key")
    #expect(other.end == .exit(1) && other.errors.contains("is wrapped with master key "), "\(other)")
    unsafe chmod(files.path + "/master-key", 0o644)
    let open = try await siwa("integrity")
    #expect(open.end == .exit(2) && open.errors.contains("SIWA_STORE_MASTER_KEY: "), "\(open)")
    #expect(open.errors.contains("must be this user's own, with mode 0600"))
    let nothing = try await siwa("migrate", environment: [:])
    #expect(nothing.end == .exit(2) && nothing.errors.contains("store.master-key: missing"), "\(nothing)")
  }
}
