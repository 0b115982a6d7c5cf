import AccountEvents
import AccountServices
import Configuration
import EventLoop
import Glibc
import JSON

/// `siwa audit report`: a page about a period.
struct AuditReportCommand: Command {
  static let name = "audit report"
  static let summary = "Writes a report about a period: a page for people (HTML), and the same for programs (JSON)."
  static let details = """
    Obligations by type, how long each took with a drawing of it, what is open, what the consumers did, what people decided,
    what the log has not seen, signatures that do not hold, and the checkpoint that all of it follows from. The page is one
    file that loads nothing, and can be printed. Both are written as report.html and report.json.

    Exit codes as those of 'siwa audit completeness', whatever they are the report is written: 0 all is in order, 1 an
    obligation of the period is overdue, or the log has not seen everything, 2 the command line or the configuration makes
    no sense, 3 the log cannot be read, or the directory not be written.

    """
  static let examples = [
    CommandExample(
      "siwa audit report --from 2026-01-01 --to 2026-04-01 -o report", "A quarter, for whoever asks for it.")
  ]

  private let judgement: AuditJudgement
  private let directory: String
  private let access: AuditAccess

  init(reading arguments: inout CommandArguments) {
    judgement = AuditJudgement(reading: &arguments)
    directory = arguments.read("-o", "DIRECTORY", .path, "Where report.html and report.json are written.")
    access = AuditAccess(reading: &arguments)
  }

  func run() async -> ExitCode {
    // What is overdue may stand in what is left out, if that is older than the deadline.
    await access.open(within: judgement.deadline) { log, known in
      let reporter = try await judgement.read(log, without: known.absent)
      let report = try await reporter.report(of: log, at: known.place, now: .now)
      try OutputFile.makeDirectory(directory)
      for (name, bytes) in [("report.html", Array(report.html.utf8)), ("report.json", report.json.bytes)] {
        let path = "\(directory)/\(name)"
        try OutputFile.writing(to: path) { try DurableFile(path: path).replace(with: bytes) }
        Terminal.say(path)
      }
      if report.overdueCount > 0 { Terminal.complain("siwa: \(report.overdueCount) obligations are overdue") }
      if report.gaps.count > 0 { Terminal.complain("siwa: the log has not seen everything: \(report.gaps.count) gaps") }
      return report.isInOrder ? .success : .failure
    }
  }
}
