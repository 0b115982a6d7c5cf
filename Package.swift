// swift-tools-version: 6.2
import PackageDescription

/// Every target is held to the same strictness; see docs/development.md.
let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .enableUpcomingFeature("InferIsolatedConformances"),
  .enableUpcomingFeature("ImmutableWeakCaptures"),
  .treatAllWarnings(as: .error),
  .strictMemorySafety(),
]

/// A module map to a C library of Debian's, with the shims for its macros and variadic calls.
func system(_ name: String, apt package: String? = nil) -> Target {
  .systemLibrary(name: name, path: "Sources/System/\(name)", providers: package.map { [.apt([$0])] })
}

/// A module of one of the floors: Platform or Domain.
func room(_ floor: String, _ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, path: "Sources/\(floor)/\(name)", swiftSettings: strict)
}

/// A program that somebody runs: it reads its configuration, builds and runs.
///
/// As released it has mimalloc in place of glibc's allocator, for all the libraries in it: the e-mail relay takes a seventh
/// less CPU to catch up, and the ingress two megabytes more. Tests keep glibc's, which sanitizers and checks know.
func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "Sources/Programs/\(name)", swiftSettings: strict,
    linkerSettings: [.linkedLibrary("mimalloc", .when(configuration: .release))])
}

/// The tests of a module. What lies `beside` the sources is read from where it is, and not built in.
func tests(_ name: String, _ dependencies: [Target.Dependency], beside: [String] = []) -> Target {
  .testTarget(
    name: name, dependencies: dependencies, path: "Tests/\(name)", exclude: beside, swiftSettings: strict)
}

/// What reads bytes from outside.
let fuzzed: [Target.Dependency] = [
  "AccountEvents", "AccountServices", "AccountStore", "AppleID", "AppleSimulator", "Configuration", "Cryptography",
  "EventLoop", "HTTPClient", "HTTPServer", "JSON", "Kafka", "Telemetry", "TransparencyLog",
]

let package = Package(
  name: "siwa",
  products: [
    // What a Swift service downstream imports to read the events.
    .library(name: "AccountEvents", targets: ["AccountEvents"]),
    // What a consumer of one's own is made with.
    .library(name: "AccountServices", targets: ["AccountServices", "AccountStore"]),
  ],
  targets: [
    // System
    system("CLinux"),
    system("COpenSSL", apt: "libssl-dev"),
    system("CLibcurl", apt: "libcurl4-openssl-dev"),
    system("CLibpq", apt: "libpq-dev"),
    system("CLibrdkafka", apt: "librdkafka-dev"),
    system("CLibyaml", apt: "libyaml-dev"),
    system("CSQLite", apt: "libsqlite3-dev"),

    // Platform
    room("Platform", "EventLoop", ["CLinux"]),
    room("Platform", "Telemetry", []),
    room("Platform", "Kafka", ["CLibrdkafka", "CLinux", "EventLoop", "JSON"]),
    room("Platform", "Configuration", ["CLibyaml", "EventLoop"]),
    room("Platform", "Cryptography", ["COpenSSL"]),
    room("Platform", "HTTPServer", ["COpenSSL", "EventLoop"]),
    room("Platform", "HTTPClient", ["CLibcurl", "EventLoop"]),
    room("Platform", "JSON", []),
    room("Platform", "PostgreSQL", ["CLibpq", "EventLoop"]),
    room("Platform", "SQLite", ["CLinux", "CSQLite", "EventLoop"]),
    room("Platform", "TransparencyLog", ["CLinux", "Cryptography"]),

    // Domain
    room("Domain", "AccountEvents", ["JSON", "Telemetry"]),
    room(
      "Domain", "AppleID", ["AccountEvents", "Cryptography", "EventLoop", "HTTPClient", "JSON", "Telemetry"]),
    room(
      "Domain", "AccountStore",
      ["AccountEvents", "Configuration", "Cryptography", "EventLoop", "PostgreSQL", "SQLite"]),
    room(
      "Domain", "AccountServices",
      [
        "AccountEvents", "AccountStore", "AppleID", "Configuration", "Cryptography", "EventLoop", "HTTPClient",
        "HTTPServer", "JSON", "Kafka", "PostgreSQL", "SQLite", "Telemetry", "TransparencyLog",
      ]),
    room(
      "Domain", "AppleSimulator", ["AccountEvents", "Cryptography", "EventLoop", "HTTPClient", "HTTPServer", "JSON"]),

    // Programs
    program("siwa-ingress", ["AccountServices"]),
    program("siwa-token-revoker", ["AccountServices"]),
    program("siwa-email-relay", ["AccountServices"]),
    program("siwa-data-eraser", ["AccountServices"]),
    program("siwa-audit-log", ["AccountServices"]),
    program("siwa-accounts", ["AccountServices"]),
    program(
      "siwa",
      [
        "AccountEvents", "AccountServices", "AccountStore", "AppleID", "AppleSimulator", "Configuration",
        "Cryptography", "EventLoop", "HTTPClient", "HTTPServer", "JSON", "Kafka", "SQLite", "Telemetry",
        "TransparencyLog",
      ]),

    // Tests
    tests(
      "AccountServicesTests",
      [
        "AccountEvents", "AccountServices", "AccountStore", "AppleID", "AppleSimulator", "AuditSupport", "CLibrdkafka",
        "Configuration", "ConsumerSupport", "Cryptography", "EventLoop", "HTTPClient", "HTTPServer", "JSON", "Kafka",
        "LogSupport", "SQLite", "Telemetry", "TestSupport", "TransparencyLog", "durable-writer", "killed-consumer",
        "newsletter",
      ], beside: ["Golden", "Python"]),
    tests(
      "AccountStoreTests",
      [
        "AccountEvents", "AccountStore", "Configuration", "Cryptography", "EventLoop", "PostgreSQL", "SQLite",
        "TestSupport", "durable-writer",
      ]),
    tests("AccountEventsTests", ["AccountEvents", "JSON", "TestSupport"], beside: ["Golden", "Python"]),
    tests(
      "AppleSimulatorTests",
      [
        "AccountEvents", "AppleID", "AppleSimulator", "Cryptography", "EventLoop", "HTTPClient", "HTTPServer", "JSON",
        "TestSupport",
      ], beside: ["Python"]),
    .target(
      name: "TestSupport",
      dependencies: ["CLinux", "COpenSSL", "Cryptography", "EventLoop", "HTTPServer", "Telemetry"],
      path: "Tests/TestSupport", exclude: ["Authentic"], swiftSettings: strict),
    // What stands in for Kafka around a consumer, and watches its store.
    .target(
      name: "ConsumerSupport",
      dependencies: [
        "AccountEvents", "AccountServices", "AccountStore", "AppleSimulator", "Cryptography", "EventLoop", "JSON",
        "Kafka", "Telemetry", "TestSupport",
      ], path: "Tests/ConsumerSupport", swiftSettings: strict),
    // Logs that verifiers judge, and what somebody may have done to them.
    .target(
      name: "LogSupport", dependencies: ["TestSupport", "TransparencyLog"], path: "Tests/LogSupport", exclude: ["Go"],
      swiftSettings: strict),
    // What an audit log says of a few events.
    .target(
      name: "AuditSupport",
      dependencies: ["AccountEvents", "AccountServices", "AccountStore", "Cryptography", "Kafka"],
      path: "Tests/AuditSupport", swiftSettings: strict),
    // A consumer that is killed at every step.
    .executableTarget(
      name: "killed-consumer",
      dependencies: [
        "AccountEvents", "AccountServices", "AccountStore", "AppleID", "ConsumerSupport", "Cryptography", "EventLoop",
        "HTTPClient", "Kafka", "Telemetry",
      ], path: "Tests/KilledConsumer", swiftSettings: strict),
    // The consumer of one's own that docs/own-consumer.md shows: built as by somebody outside of this package.
    .executableTarget(
      name: "newsletter", dependencies: ["AccountEvents", "AccountServices", "AccountStore"], path: "Tests/OwnConsumer",
      packageAccess: false),
    // What is killed while it writes.
    .executableTarget(
      name: "durable-writer",
      dependencies: [
        "AccountEvents", "AccountServices", "AccountStore", "EventLoop", "SQLite", "Telemetry",
      ],
      path: "Tests/DurableWriter", swiftSettings: strict),
    // The built programs: they lie beside the tests.
    tests(
      "EndToEndTests",
      [
        "AccountEvents", "AccountServices", "AccountStore", "AppleID", "AppleSimulator", "AuditSupport", "CLibrdkafka",
        "Configuration", "ConsumerSupport", "Cryptography", "EventLoop", "HTTPClient", "HTTPServer", "Kafka",
        "JSON", "LogSupport", "SQLite", "Telemetry", "TestSupport", "TransparencyLog", "persistent-sender", "siwa",
        "siwa-accounts", "siwa-audit-log", "siwa-data-eraser", "siwa-email-relay", "siwa-ingress", "siwa-token-revoker",
      ], beside: ["Preloaded", "Python"]),
    .executableTarget(
      name: "persistent-sender", path: "Tests/PersistentSender",
      linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
    tests("EventLoopTests", ["EventLoop", "TestSupport"]),
    tests("KafkaTests", ["CLibrdkafka", "EventLoop", "Kafka", "TestSupport"]),
    tests("ConfigurationTests", ["Configuration", "EventLoop", "TestSupport"]),
    tests("TelemetryTests", ["EventLoop", "Telemetry", "TestSupport"]),
    tests("CryptographyTests", ["COpenSSL", "Cryptography", "TestSupport"], beside: ["Python"]),
    tests(
      "HTTPServerTests", ["Cryptography", "EventLoop", "HTTPServer", "TestSupport"], beside: ["Corpus", "Python"]),
    tests(
      "HTTPClientTests", ["Cryptography", "EventLoop", "HTTPClient", "HTTPServer", "TestSupport"], beside: ["Python"]),
    tests("JSONTests", ["JSON", "TestSupport"]),
    tests("PostgreSQLTests", ["CLibpq", "EventLoop", "PostgreSQL", "TestSupport"]),
    tests("SQLiteTests", ["CSQLite", "EventLoop", "SQLite", "TestSupport", "durable-writer"]),
    tests(
      "TransparencyLogTests",
      ["Cryptography", "EventLoop", "LogSupport", "TestSupport", "TransparencyLog", "killed-log-writer"],
      beside: ["Preloaded"]),
    // A writer of a log that is killed at every step, or whose disk is full.
    .executableTarget(
      name: "killed-log-writer", dependencies: ["Cryptography", "TransparencyLog"], path: "Tests/KilledLogWriter",
      swiftSettings: strict),
    .testTarget(
      name: "FuzzTests", dependencies: fuzzed + ["TestSupport"], path: "Tests/Fuzz",
      exclude: ["Corpus", "CLibFuzzer", "README.md", "Runner", "run"], sources: ["Subjects", "Replay"],
      swiftSettings: strict),
    tests(
      "AppleIDTests",
      [
        "AccountEvents", "AppleID", "AppleSimulator", "Cryptography", "EventLoop", "HTTPClient", "HTTPServer", "JSON",
        "Telemetry", "TestSupport",
      ], beside: ["Python"]),
  ]
)

/// A program that measures. It is strict too, but for what a measurement may crash on: its own arguments.
func benchmark(_ name: String, _ dependencies: [Target.Dependency] = [], linking: [String] = []) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "Tests/Benchmarks/Sources/\(name)", swiftSettings: strict,
    linkerSettings: linking.map { .linkedLibrary($0) })
}

// Unseen by every other build: `make bench` asks for them.
if Context.environment["SIWA_BENCHMARKS"] != nil {
  package.targets += [
    benchmark("bare-server", ["EventLoop", "HTTPServer"]),
    benchmark("simulated-apple", ["AccountEvents", "AppleSimulator", "EventLoop", "HTTPClient"]),
    benchmark("verification", ["AccountEvents", "AppleID"]),
    benchmark(
      "people", ["AccountEvents", "AppleID", "AppleSimulator", "Cryptography", "EventLoop", "HTTPClient", "HTTPServer"]),
    benchmark("load", linking: ["ssl", "crypto"]),
    benchmark("bulk-produce", linking: ["rdkafka"]),
    benchmark("closed-loop-produce", ["EventLoop", "Kafka"]),
    benchmark("fill", ["AccountEvents", "AccountStore", "EventLoop", "Kafka"]),
    benchmark("slow-apple", ["EventLoop", "HTTPServer"]),
    benchmark("drain", ["AccountEvents", "AccountServices", "EventLoop", "Kafka", "Telemetry"]),
    benchmark(
      "consumer", ["AccountEvents", "AccountServices", "AccountStore", "EventLoop", "Kafka", "Telemetry"]),
    benchmark("account-store", ["AccountEvents", "AccountStore", "Configuration", "EventLoop", "SQLite"]),
    benchmark("spool", ["AccountEvents", "AccountServices", "EventLoop", "Telemetry"]),
    benchmark("tlog", ["COpenSSL", "TransparencyLog"]),
  ]
}

// Likewise `make fuzz`, for a program that is built from the sources of FuzzTests, and so in their place.
if Context.environment["SIWA_FUZZ"] != nil {
  package.targets.removeAll { $0.name == "FuzzTests" }
  package.targets += [
    .systemLibrary(name: "CLibFuzzer", path: "Tests/Fuzz/CLibFuzzer"),
    .executableTarget(
      name: "fuzz", dependencies: fuzzed + ["CLibFuzzer"], path: "Tests/Fuzz",
      exclude: ["Corpus", "README.md", "Replay", "run"], sources: ["Subjects", "Runner"], swiftSettings: strict),
  ]
}
