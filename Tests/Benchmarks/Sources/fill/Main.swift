import AccountEvents
import AccountStore
import EventLoop
import Glibc
import Kafka

/// Puts events onto the topic of account events, as fast as the broker takes them.
///
///     fill BOOTSTRAP-SERVERS KIND COUNT ACCOUNTS [STORE MASTER-KEY]
///
/// They are of one kind, and of so many accounts, in no order; each happened a millisecond after the one before. Ids are
/// as random as Apple's. KIND is `email` (enabled and disabled in turn), `account-delete` or `account-deletion-requested`.
/// With a store of SQLite's, everybody signs in first, so that there is a token to end.
@main
struct Fill {
  static func main() {
    let arguments = CommandLine.arguments
    guard [5, 7].contains(arguments.count), let count = Int(arguments[3]), let accounts = Int(arguments[4]) else {
      print("fill BOOTSTRAP-SERVERS KIND COUNT ACCOUNTS [STORE MASTER-KEY]")
      exit(2)
    }
    exit(Loop.run { await run(arguments[1], arguments[2], count, accounts) })
  }

  @Loop
  private static func run(_ brokers: String, _ kind: String, _ count: Int, _ accounts: Int) async -> Int32 {
    do {
      if CommandLine.arguments.count == 7 {
        try await signIn(accounts, CommandLine.arguments[5], MasterKey(file: CommandLine.arguments[6]))
      }
      let producer = try Producer(
        KafkaConfiguration(properties: [("bootstrap.servers", brokers), ("linger.ms", "20")]), deadline: .seconds(60),
        maximumWaiting: 20_000
      ) { print($0.text) }
      for first in stride(from: 0, to: count, by: 20_000) {
        let group = first..<min(first + 20_000, count)
        try await withThrowingTaskGroup(of: Void.self) { senders in
          for number in group {
            guard let record = record(number, kind, accounts) else { throw SystemError.current }
            senders.addTask(executorPreference: Loop.executor) { _ = try await producer.send(record) }
          }
          try await senders.waitForAll()
        }
      }
      return Int32(await producer.close(within: .seconds(10)))
    } catch {
      print(error)
      return 1
    }
  }

  @Loop
  private static func signIn(_ accounts: Int, _ path: String, _ key: MasterKey) async throws {
    let store = try await SQLiteAccountStore.open(path, key)
    for number in 0..<accounts {
      guard let team, let client, let subject = subject(number), let token = SecretToken("r.\(hex(UInt64(number)))"),
        let time = Timestamp(milliseconds: 1_770_000_000_000)
      else { throw SystemError.current }
      _ = try await store.recordSignIn(
        Account(team: team, subject: subject), at: time,
        tokens: [NewToken(kind: .refresh, client: client, value: token)])
    }
    await store.close()
  }

  private static let team = TeamID("A1B2C3D4E5")
  private static let client = ClientID("com.example.app")

  private static func subject(_ person: Int) -> AppleSubject? {
    AppleSubject("000768.6166f031167141e695698239\(hex(UInt64(person))).1521")
  }

  private static func record(_ number: Int, _ kind: String, _ accounts: Int) -> KafkaRecord? {
    let scattered = mixed(UInt64(number))
    let person = kind == "email" ? Int(scattered % UInt64(accounts)) : number % accounts
    guard let id = EventID("\(hex(mixed(scattered)))\(hex(scattered))"), let team, let client,
      let subject = subject(person),
      let address = RelayAddress("\(hex(mixed(UInt64(person))).suffix(10))@privaterelay.appleid.com"),
      let time = Timestamp(milliseconds: 1_780_000_000_000 + Int64(number))
    else { return nil }
    let what: AccountEvent.Kind =
      switch kind {
      case "account-delete": .accountDelete
      case "account-deletion-requested": .accountDeletionRequested
      default:
        number.isMultiple(of: 2) ? .emailEnabled(address, isPrivate: true) : .emailDisabled(address, isPrivate: true)
      }
    let event = AccountEvent(
      id: id, team: team, audience: client, subject: subject, kind: what, occurredAt: time, issuedAt: time)
    let record = EventRecord(event, jws: jws)
    return KafkaRecord(
      topic: record.topic.name, key: record.key, value: record.value,
      headers: record.headers.map { KafkaHeader($0.name, $0.value) })
  }

  private static let jws = [UInt8](repeating: 120, count: 900)

  private static func hex(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Each number becomes another one.
  private static func mixed(_ number: UInt64) -> UInt64 {
    var number = number &+ 0x9e37_79b9_7f4a_7c15
    number = (number ^ (number >> 30)) &* 0xbf58_476d_1ce4_e5b9
    number = (number ^ (number >> 27)) &* 0x94d0_49bb_1331_11eb
    return number ^ (number >> 31)
  }
}
