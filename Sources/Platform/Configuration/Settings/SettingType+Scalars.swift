public import EventLoop

extension SettingType where Value == String {
  /// Text of a bounded number of bytes, without control characters.
  public static func text(_ size: ClosedRange<Int>) -> SettingType {
    SettingType(
      "text", expected: "text of \(size.lowerBound) to \(size.upperBound) bytes", standIn: "", show: { $0 },
      parse: { text in
        size.contains(text.utf8.count) && !text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7f }
          ? text : nil
      })
  }
}

extension SettingType where Value == Int {
  /// A whole number; `unit` says of what, in the plural.
  public static func integer(_ range: ClosedRange<Int>, unit: String? = nil) -> SettingType {
    let bounds = "\(range.lowerBound) to \(range.upperBound)"
    return SettingType(
      "\(unit.map { "number of \($0)" } ?? "whole number"), \(bounds)",
      expected: "a \(unit.map { "number of \($0)" } ?? "whole number") from \(bounds)",
      standIn: range.lowerBound, show: { String($0) },
      parse: { text in
        // Only the one way to write it: neither +5 nor 007.
        guard let number = Int(text), String(number) == text, range.contains(number) else { return nil }
        return number
      })
  }

  /// A number of bytes, with its unit.
  public static func byteSize(_ range: ClosedRange<Int>) -> SettingType {
    let bounds = "\(ByteSize.show(range.lowerBound)) to \(ByteSize.show(range.upperBound))"
    return SettingType(
      "size, \(bounds)", expected: "a size from \(bounds), such as 512B, 64KiB or 1MiB", standIn: range.lowerBound,
      show: ByteSize.show
    ) { text in
      guard let size = Quantity.parse(text, units: ByteSize.units), range.contains(size) else { return nil }
      return size
    }
  }
}

extension SettingType where Value == Bool {
  /// `true` or `false`, and no other word for it.
  public static var boolean: SettingType {
    SettingType(
      "true or false", expected: "true or false", standIn: false, show: { $0 ? "true" : "false" },
      parse: {
        text in text == "true" ? true : text == "false" ? false : nil
      })
  }
}

extension SettingType where Value == Duration {
  /// A length of time, with its unit.
  public static func duration(_ range: ClosedRange<Duration>) -> SettingType {
    let bounds = "\(Milliseconds.show(range.lowerBound)) to \(Milliseconds.show(range.upperBound))"
    return SettingType(
      "duration, \(bounds)", expected: "a duration from \(bounds), such as 250ms, 5s or 60d",
      standIn: range.lowerBound, show: Milliseconds.show
    ) { text in
      guard let count = Quantity.parse(text, units: Milliseconds.units) else { return nil }
      let duration = Duration.milliseconds(count)
      return range.contains(duration) ? duration : nil
    }
  }
}

extension SettingType where Value == SocketAddress {
  /// An IP address and a port.
  public static var socketAddress: SettingType {
    SettingType(
      "address and port", expected: "an IP address and a port, such as 127.0.0.1:8443 or [::1]:8443",
      standIn: .loopback(port: 0), show: \.description
    ) { SocketAddress($0) }
  }
}

extension SettingType where Value == AddressRange {
  /// A range of IP addresses.
  public static var addressRange: SettingType {
    SettingType(
      "range of addresses",
      expected: "a range of addresses that begins where its prefix says, such as 10.0.0.0/8 or 2001:db8::/32",
      standIn: .loopback, show: \.description
    ) { AddressRange($0) }
  }
}

/// A whole number directly followed by its unit.
private enum Quantity {
  static func parse(_ text: String, units: KeyValuePairs<String, Int>) -> Int? {
    let digits = text.prefix { $0.isASCII && $0.isWholeNumber }
    let unit = text.dropFirst(digits.count)
    guard let factor = units.first(where: { $0.key == unit })?.value, let number = Int(digits) else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? nil : product
  }

  /// In the largest unit that divides the amount.
  static func show(_ amount: Int, units: KeyValuePairs<String, Int>) -> String {
    for (unit, factor) in units where amount % factor == 0 && (amount != 0 || factor == 1) {
      return "\(amount / factor)\(unit)"
    }
    preconditionFailure("the last unit divides everything")
  }
}

private enum ByteSize {
  static var units: KeyValuePairs<String, Int> { ["GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1] }

  @Sendable static func show(_ size: Int) -> String { Quantity.show(size, units: units) }
}

private enum Milliseconds {
  static var units: KeyValuePairs<String, Int> {
    ["d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1]
  }

  @Sendable static func show(_ duration: Duration) -> String {
    if duration == .zero { return "0s" }
    return Quantity.show(Int(duration.wholeNanoseconds / 1_000_000), units: units)
  }
}
