import EventLoop
import Foundation
import Glibc
import TestSupport
import Testing

/// A disk of a few megabytes, in a mount namespace that a process of its own keeps. It is gone with this value.
@Loop
final class SmallDisk {
  /// Whether the system lets us.
  static func isPossible() async throws -> Bool {
    try await RunningProgram.finish(path: "/usr/bin/unshare", namespace + ["mount -t tmpfs tmpfs /mnt"]).end == .exit(0)
  }

  private nonisolated static let namespace = ["--user", "--map-root-user", "--mount", "/bin/sh", "-c"]

  /// The disk, as it is seen from outside of the namespace.
  let path: String
  private let holder: RunningProgram
  private var balloon: String { path + "/balloon" }

  /// Mounts it at a place that a program in the namespace then finds it at.
  init(at place: String) async throws {
    try #require(unsafe mkdir(place, 0o700) == 0)
    holder = try RunningProgram(
      "/usr/bin/unshare",
      Self.namespace + ["mount -t tmpfs -o size=4m,mode=700 tmpfs $0 && echo mounted && cat", place],
      endsWithItsInput: true)
    _ = try await holder.outputLine(with: "mounted")
    path = "/proc/\(holder.identifier)/root\(place)"
  }

  /// What starts a program so that it finds the disk there.
  var entrance: [String] {
    ["/usr/bin/nsenter", "--target", "\(holder.identifier)", "--user", "--preserve-credentials", "--mount", "--wd=/"]
  }

  /// Leaves no room for another byte.
  func fill() throws {
    let file = unsafe open(balloon, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    try #require(file >= 0)
    defer { close(file) }
    let air = [UInt8](repeating: 1, count: 65_536)
    for size in [65_536, 4096, 1] { while unsafe write(file, air, size) > 0 {} }
  }

  /// Makes room again.
  func empty() { unsafe unlink(balloon) }
}
