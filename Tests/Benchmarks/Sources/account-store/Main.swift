import AccountEvents
import AccountStore
import EventLoop
import Glibc
import SQLite

/// What a settlement costs in the account store: e-mail events of many accounts, as `siwa-email-relay` settles them, with
/// judgement, sealed address, ledger, fence and the marks of twelve partitions. Beside it, in the same run, what SQLite alone takes to put
/// as many rows of those sizes into tables of that shape, in transactions as large.
///
///     account-store DIRECTORY COUNT ACCOUNTS BATCH [DATABASE | bare]
///
/// With `bare` behind it, the latter alone. With the connection string of an empty database of PostgreSQL's, the store in
/// that one, and nothing beside it; the CPU time is that of this process alone then.
///
/// Prints for each the number a second and the CPU time of one in microseconds, and the ratio between them.
@main
struct AccountStoreBenchmark {
  static func main() {
    let arguments = CommandLine.arguments
    guard 5...6 ~= arguments.count, let count = Int(arguments[2]), let accounts = Int(arguments[3]),
      let batch = Int(arguments[4])
    else {
      print("account-store DIRECTORY COUNT ACCOUNTS BATCH [DATABASE | bare]")
      exit(2)
    }
    let load = Load(
      directory: arguments[1], count: count, accounts: accounts, batch: batch,
      postgresql: arguments.count == 6 ? arguments[5] : nil)
    exit(Loop.run { load.postgresql == "bare" ? await load.runBare() : await load.run() })
  }
}
