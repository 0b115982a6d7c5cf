import Configuration
import Testing

/// Every fault has its exact text: it is what an operator reads at three in the morning.
@Suite struct FaultTests {
  @Test(arguments: [
    ("main: { name: }", "t.yaml:1: main.name: expected text of 1 to 20 bytes, found nothing"),
    ("main: { name: ~ }", "t.yaml:1: main.name: expected text of 1 to 20 bytes, found nothing"),
    ("main: { name: [x] }", "t.yaml:1: main.name: expected text of 1 to 20 bytes, found a list"),
    ("main: { name: { x: y } }", "t.yaml:1: main.name: expected text of 1 to 20 bytes, found a group of settings"),
    ("main: { name: \"\" }", "t.yaml:1: main.name: expected text of 1 to 20 bytes, found \"\""),
    ("main: { name: \"a\\nb\" }", #"t.yaml:1: main.name: expected text of 1 to 20 bytes, found "a\nb""#),
    ("main: { name: a\u{fffd} }", "t.yaml:1: main.name: it is not UTF-8"),
    ("main: {}", "main.name: missing; expected text of 1 to 20 bytes; set it in t.yaml or as TEST_MAIN_NAME"),
    ("", "main.name: missing; expected text of 1 to 20 bytes; set it in t.yaml or as TEST_MAIN_NAME"),
  ]) func explainsWhatANameShouldBe(file: String, fault: String) {
    #expect(schema.faults(Example.self, file: file) == [fault])
  }

  private static let address = "an IP address and a port, such as 127.0.0.1:8443 or [::1]:8443"
  private static let workers = "a number of threads from 1 to 64"
  private static let deadline = "a duration from 0s to 1m, such as 250ms, 5s or 60d"
  private static let size = "a size from 1B to 1MiB, such as 512B, 64KiB or 1MiB"
  private static let url = "an https URL"

  @Test(arguments: [
    ("listen", address, ["localhost:80", "127.0.0.1", "127.0.0.1:65536", "::1:80", "127.1:80", ":80", "a:b:c"]),
    ("workers", workers, ["0", "65", "-1", "+5", "07", "1.5", "five", "99999999999999999999", "1_0", "٣"]),
    ("fast", "true or false", ["yes", "True", "1", "on"]),
    (
      "deadline", deadline, ["5", "s", "5 s", "-1s", "61s", "1.5s", "99999999999999999999s", "9999999999999999d", "5S"]
    ),
    ("max-size", size, ["0B", "2MiB", "64KB", "64k", "1024", "9999999999999999GiB", "1 KiB"]),
    ("level", "low or high", ["LOW", "medium", "lo"]),
    ("address", url, ["http://example.com", "https://", "example.com"]),
  ]) func refusesMalformedValues(setting: String, expectation: String, values: [String]) {
    for value in values {
      let file = "main:\n  name: x\n  \(setting): \"\(value)\"\n"
      #expect(
        schema.faults(Example.self, file: file)
          == ["t.yaml:3: main.\(setting): expected \(expectation), found \"\(value)\""])
      let variable = "TEST_MAIN_" + (setting == "max-size" ? "MAX_SIZE" : setting.uppercased())
      #expect(
        schema.faults(Example.self, file: "main: { name: x }", environment: [variable: value])
          == ["\(variable): expected \(expectation), found \"\(value)\""])
      #expect(
        schema.faults(Example.self, file: "main: { name: x }", overrides: ["main.\(setting)=\(value)"])
          == ["--set main.\(setting): expected \(expectation), found \"\(value)\""])
    }
  }

  private static let tags = "a list of 0 to 3 items, each text of 1 to 9 bytes"

  @Test(arguments: [
    ("main:\n  name: x\n  tags: a", "t.yaml:3: main.tags: expected \(tags), found \"a\""),
    ("main:\n  name: x\n  tags: [a, b, c, d]", "t.yaml:3: main.tags: expected \(tags), found a list"),
    (
      "main:\n  name: x\n  tags:\n    - a\n    - 1234567890",
      "t.yaml:5: main.tags: expected \(tags), found \"1234567890\""
    ),
    ("main:\n  name: x\n  tags:\n    - [a]", "t.yaml:4: main.tags: expected \(tags), found a list"),
  ]) func namesTheLineOfAFaultyItem(file: String, fault: String) {
    #expect(schema.faults(Example.self, file: file) == [fault])
  }

  @Test(arguments: [
    ("maim: { name: x }", "t.yaml:2: maim: unknown setting; did you mean main?"),
    ("main: { nmae: x }", "t.yaml:2: main.nmae: unknown setting; did you mean main.name?"),
    ("main: { maxsize: 1B }", "t.yaml:2: main.maxsize: unknown setting; did you mean main.max-size?"),
    ("main: { Name: x }", "t.yaml:2: main.Name: unknown setting; did you mean main.name?"),
    ("colour: red", "t.yaml:2: colour: unknown setting"),
    ("main.name: x", "t.yaml:2: main.name: expected name inside of main"),
    ("<<: { name: x }", "t.yaml:2: <<: unknown setting"),
    ("\"a\\e[0m\": x", #"t.yaml:2: "a\u{1B}[0m": unknown setting"#),
    ("main: text", "t.yaml:2: main: expected a group of settings, found \"text\""),
    ("main: [x]", "t.yaml:2: main: expected a group of settings, found a list"),
  ]) func refusesWhatNobodyKnows(line: String, fault: String) {
    let found = schema.faults(Example.self, file: "# settings\n" + line, environment: ["TEST_MAIN_NAME": "x"])
    #expect(found == [fault])
  }

  @Test func refusesUnknownVariablesAndOptions() {
    let environment = [
      "TEST_MIAN_NAME": "hidden", "TEST_OTHER": "hidden", "TEST_MAIN_NAME_FILE": "hidden", "TESTX": "",
    ]
    let overrides = ["main.nam=hidden", "x", "main=hidden", "other=hidden"]
    #expect(
      schema.faults(Example.self, file: "main: { name: x }", environment: environment, overrides: overrides) == [
        "TEST_MAIN_NAME_FILE: unknown setting; did you mean TEST_MAIN_NAME?",
        "TEST_MIAN_NAME: unknown setting; did you mean TEST_MAIN_NAME?",
        "TEST_OTHER: unknown setting",
        "--set: expected NAME=VALUE, as in log.level=debug",
        "--set main: expected one setting, found the name of a group of settings",
        "--set main.nam: unknown setting; did you mean main.name?",
        "--set other: unknown setting",
      ])
  }

  @Test func tellsAllFaultsTogetherInTheOrderOfTheirPlaces() {
    let file = "main:\n  workers: many\n  speed: 1\n  level: loud\n  level: low\n"
    let found = schema.faults(
      Example.self, file: file, environment: ["TEST_MAIN_FAST": "maybe"], overrides: ["main.deadline=soon"])
    #expect(
      found == [
        "t.yaml:2: main.workers: expected a number of threads from 1 to 64, found \"many\"",
        "t.yaml:3: main.speed: unknown setting",
        "t.yaml:4: main.level: expected low or high, found \"loud\"",
        "t.yaml:5: \"level\" stands here twice, first in line 4",
        "TEST_MAIN_FAST: expected true or false, found \"maybe\"",
        "--set main.deadline: expected a duration from 0s to 1m, such as 250ms, 5s or 60d, found \"soon\"",
        "main.name: missing; expected text of 1 to 20 bytes; set it in t.yaml or as TEST_MAIN_NAME",
      ])
  }

  @Test func cutsWhatItFound() {
    let long = String(repeating: "x", count: 1000)
    let found = schema.faults(Example.self, file: "main: { name: x, level: \(long), \(long): 1 }")
    #expect(found.count == 2)
    #expect(found.allSatisfy { $0.utf8.count < 150 })
  }
}
