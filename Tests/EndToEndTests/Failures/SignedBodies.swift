import AccountEvents
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import TestSupport

/// What the sender posts: signed ahead of time, because signing costs more than all that follows.
final class SignedBodies: Sendable {
  /// The file: one body a line, user after user.
  let path: String
  /// How many users there are, and how many events each has.
  let users, events: Int
  /// What tells them from those of other trials.
  let trial: UInt64

  /// Signs with Apple's keys, on two threads. The file is gone with this.
  init(users: Int, events: Int, with keys: [SigningKey]) async throws {
    (self.users, self.events, trial) = (users, events, UInt64.random(in: 1...UInt64.max))
    path = "/tmp/siwa-bodies-\(String(trial, radix: 36))"
    let threads = [BlockingThread(named: "sign-1"), BlockingThread(named: "sign-2")]
    try Data().write(to: URL(fileURLWithPath: path))
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    let share = max(1, min(500, users / 2))
    for first in stride(from: 0, to: users, by: 2 * share) {
      async let one = part(first..<min(first + share, users), keys, threads[0])
      async let other = part(min(first + share, users)..<min(first + 2 * share, users), keys, threads[1])
      for bytes in [try await one, try await other] { try file.write(contentsOf: Data(bytes)) }
    }
    try file.close()
    for thread in threads { thread.close() }
  }

  deinit { unsafe unlink(path) }

  private func part(_ users: Range<Int>, _ keys: [SigningKey], _ thread: BlockingThread) async throws -> [UInt8] {
    try await thread.run(throwing: { [events, trial] in
      var bytes: [UInt8] = []
      for user in users {
        let person = Person(named: SentEvent.name(ofUser: user))
        for number in 0..<events {
          let now = Timestamp.now
          let notification = AppleNotification(
            type: NotificationType.allCases[(user + number) % NotificationType.allCases.count], person: person,
            audience: Stage.app, jti: SentEvent(trial: trial, user: user, number: number).jti,
            occurredAt: now - .seconds(12), issuedAt: now, issuer: AppleNotification.appleIssuer, faults: [])
          let key = keys[(user + number) % keys.count]
          bytes += try SignedNotification(notification, by: key, forger: key.privateKey).body
          bytes.append(UInt8(ascii: "\n"))
        }
      }
      return bytes
    })
  }
}
