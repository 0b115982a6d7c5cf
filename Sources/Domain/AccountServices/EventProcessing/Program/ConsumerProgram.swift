public import AccountEvents
public import AccountStore
public import Configuration

/// A program around a consumer: it reads the configuration, joins the group, and serves until a signal comes.
///
/// ```swift
/// @main struct Newsletter: ConsumerProgram { … }
/// ```
public protocol ConsumerProgram: Sendable {
  /// What the consumer reads from the configuration beside what all consumers do.
  associatedtype Own: Configurable

  /// The name by which it is started: `siwa-token-revoker`.
  static var program: String { get }
  /// The consumer's name, under which its settings stand too.
  static var consumer: ConsumerName { get }
  /// What it does, in one line.
  static var summary: String { get }
  /// What whoever runs it has to know beside that, in paragraphs; empty where there is nothing.
  static var explanation: String { get }
  /// The port on loopback where operators ask, unless they say otherwise.
  static var administrationPort: UInt16 { get }
  /// Whether events are verified, unless the configuration says otherwise; not, unless this does. Otherwise whoever may
  /// write to the topic is believed.
  static var verifies: Bool { get }
  /// Which events are verified whatever the configuration says; nil where it alone decides, as it does unless this says
  /// otherwise.
  static var alwaysVerifies: (@Sendable (AccountEvent) -> Bool)? { get }

  /// Makes the consumer, once, before anything is read.
  static func makeConsumer(_ own: Own, in surroundings: ConsumerSurroundings) async throws -> EventConsumer
}

extension ConsumerProgram {
  /// Nothing.
  public static var explanation: String { "" }
  /// No.
  public static var verifies: Bool { false }
  /// None.
  public static var alwaysVerifies: (@Sendable (AccountEvent) -> Bool)? { nil }

  /// Runs the program and ends the process.
  public static func main() { ConsumerCommand<Self>.main() }

  /// All settings of all programs, this one among them.
  static var schema: ConfigurationSchema {
    let schema = ConfigurationSchema.siwa
    if schema.programs.contains(where: { $0.name == program }) { return schema }
    return schema.adding(program, ConsumerConfiguration<Self>.self)
  }
}

/// Nothing: for a consumer without settings of its own.
public struct NoSettings: Configurable {
  /// Reads nothing.
  public init(reading settings: inout Settings) {}
}
