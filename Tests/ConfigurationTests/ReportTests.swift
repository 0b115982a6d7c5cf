import Configuration
import TestSupport
import Testing

@Suite struct ReportTests {
  private let directory = TemporaryDirectory()
  private let both = schema.adding("vault", Vault.self)

  private func report(_ file: String, programs: [String] = []) -> ConfigurationReport {
    let sources = ConfigurationSources(
      file: directory.write("t.yaml", file), environment: ["TEST_MAIN_WORKERS": "7"], overrides: ["main.fast=true"])
    return both.check(sources, programs: programs)
  }

  private func text(_ report: ConfigurationReport) -> String {
    report.description.split(separator: directory.path + "/", omittingEmptySubsequences: false).joined()
  }

  @Test func saysWhatEachProgramWouldUseAndFromWhere() {
    let report = report(
      """
      main:
        name: x
        tags: [a, b]
      limits: { A: { most: 3 } }
      options: { a.b: "c\\nd" }
      """)
    #expect(report.isUsable)
    #expect(
      text(report) == """
        example
          main.name      x             t.yaml:2
          main.listen    127.0.0.1:80  default
          main.workers   7             TEST_MAIN_WORKERS
          main.fast      true          --set main.fast
          main.deadline  5s            default
          main.max-size  64KiB         default
          main.level     low           default
          main.data      data          default
          main.tags      a, b          t.yaml:3

        vault
          limits.A.most  3     t.yaml:4
          options.a.b    c\\nd  t.yaml:5

        no faults

        """)
  }

  @Test func warnsOfWhatIsWorthALook() {
    let key = directory.write("key", "k", mode: 0o644)
    let report = report("main: { name: x }\nvault: { private-key: key }\nlimits: { A: { most: 3 } }\n")
    #expect(report.isUsable)
    #expect(report.programs[1].warnings.first?.message == "everybody can read \(key)")
    #expect(text(report).hasSuffix("  warning: t.yaml:2: vault.private-key: everybody can read key\n\nno faults\n"))
  }

  @Test func tellsFaultsOfTheFileOnceAndThoseOfEachProgram() {
    let report = report("colour: red\nmain: { level: loud }\n")
    #expect(!report.isUsable)
    #expect(
      text(report).hasSuffix(
        """
        fault: t.yaml:1: colour: unknown setting
        fault, example: t.yaml:2: main.level: expected low or high, found "loud"
        fault, example: main.name: missing; expected text of 1 to 20 bytes; set it in t.yaml or as TEST_MAIN_NAME
        fault, vault: limits: missing; expected settings for a room (capital letters)
        4 faults

        """))
  }

  @Test func looksOnlyAtTheProgramsThatAreNamed() {
    let report = report("main: { name: x }", programs: ["example"])
    #expect(report.isUsable)
    #expect(report.programs.map(\.name) == ["example"])
  }

  @Test func saysNothingOfWhatAnUnreadableFileWouldHaveSet() {
    #expect(text(report("main: {")).contains("\n\nfault: t.yaml:1: not YAML"))
    #expect(text(report("main: {")).hasSuffix("\n1 fault\n"))
  }

  @Test func explainsEverySettingInATable() {
    let rows = both.markdownTable.split(separator: "\n")
    #expect(rows[0] == "| setting | variable | value | default | meaning |")
    #expect(rows[2] == "| `main.name` | `TEST_MAIN_NAME` | text | required | Its name. |")
    #expect(
      rows[6]
        == "| `main.deadline` | `TEST_MAIN_DEADLINE` | duration, 0s to 1m | `5s` | How long. |")
    #expect(
      rows[11]
        == "| `main.tags` | `TEST_MAIN_TAGS` | list of text, 0 to 3 of them |  | What it is \\| about. |")
    #expect(
      rows[15]
        == "| `limits.{ROOM}.most` | `TEST_LIMITS_{ROOM}_MOST` | whole number, 0 to 9 | required | How many fit in. |")
    #expect(houseSchema.markdownTable.contains(#"| How much goes through \|\| in. |"#))
    #expect(
      rows[16]
        == "| `options.{property}` | `TEST_OPTIONS_{property}` | text |  | Somebody else's. |")
  }

  @Test func explainsTheSettingsOfOneProgramInItsHelp() {
    let help = both.help(of: "example")
    #expect(help.contains("TEST_CONFIG"))
    #expect(
      help.contains(
        """
          main.name
              Its name.
              TEST_MAIN_NAME; text; required
          main.listen
              Where it listens.
              TEST_MAIN_LISTEN; address and port; default 127.0.0.1:80

        """))
    #expect(!help.contains("vault"))
  }
}
