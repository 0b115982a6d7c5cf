import AccountServices
import Configuration
import EventLoop
import Glibc

/// The operator's program: see `siwa --help`.
@main
struct Siwa {
  static func main() {
    Signals.block([SIGINT, SIGTERM])
    CoreDumps.forbid()
    let words = Array(CommandLine.arguments.dropFirst())
    let program = CommandLineProgram(
      "siwa", "Sign in with Apple on your servers: what must happen when a user changes or deletes their account.",
      [
        DevCommand.self, NotifyCommand.self, SimulateCommand.self, SpoolCommand.self, SpoolList.self, SpoolShow.self,
        SpoolRelease.self, SpoolDiscard.self, KeysCommand.self, StoreCreateKey.self, StoreBegin.self, StoreMigrate.self,
        StoreIntegrity.self, StoreBackup.self, StoreReconcile.self, StorePrune.self, StoreRotateKey.self,
        StoreRotateHashKey.self, TopicsList.self, TopicsCreate.self, TopicsCompare.self, TopicsResetGroup.self,
        ReplayCommand.self,
        LettersList<QuarantineRoom>.self,
        LettersShow<QuarantineRoom>.self, QuarantineReleaseCommand.self, LettersDiscard<QuarantineRoom>.self,
        LettersList<DeadLettersRoom>.self, LettersShow<DeadLettersRoom>.self, DeadLettersRetry.self,
        LettersDiscard<DeadLettersRoom>.self, EraseCommand.self, ErasuresList.self, ErasuresDiscard.self,
        ErasuresDue.self, ErasuresCloseLetters.self, AuditVerify.self, AuditCompleteness.self, AuditExplain.self,
        AuditReportCommand.self,
        AuditReceiptCommand.self, AuditCheck.self, AuditBundleCommand.self, AuditCreateKey.self, AuditBegin.self,
        AuditRotateKey.self,
        AccountsImport.self, AccountsValidate.self, AccountsCreateToken.self,
        MigratePrepare.self, MigrateAccept.self, MigrateUsers.self, MigrateGenerate.self, MigrateCreateKey.self,
        MigrateExport.self, MigrateImport.self, MigrateExchange.self, MigrateResults.self, MigrateDecide.self,
        MigrateStatus.self, MigrateRemove.self, MigrateRehearse.self,
        ConfigurationCheck.self, ConfigurationList.self,
      ])
    let isStoppedInOrder =
      if case .command(let command) = program.parse(words) { command is any StoppedInOrder } else { false }
    if !isStoppedInOrder { Signals.unblock([SIGINT, SIGTERM]) }
    ProcessEnd.now(with: Loop.run { await program.run(words).rawValue })
  }
}
