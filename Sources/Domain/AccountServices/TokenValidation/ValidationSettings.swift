package import Configuration

/// Whether, how fast and over how much of the day refresh tokens are validated.
package struct ValidationSettings: Configurable, Sendable {
  /// Whether it is done at all.
  package var isOn: Bool
  /// The most requests a second, as agreed with Apple or with oneself.
  package var rate: Int
  /// Over how long the tokens of a day are spread.
  package var window: Duration

  /// Everything said, nothing assumed.
  package init(isOn: Bool, rate: Int, window: Duration) { (self.isOn, self.rate, self.window) = (isOn, rate, window) }

  /// Reads `accounts.validation`.
  package init(reading settings: inout Settings) {
    isOn = settings.read(
      "accounts.validation.enabled", .boolean, default: true,
      "Whether each refresh token is validated at Apple once a day, so that an authorization is known to be over that Apple told nothing of."
    )
    rate = settings.read(
      "accounts.validation.requests", .integer(1...10_000, unit: "requests a second"), default: 50,
      "The most validations a second, all processes together.")
    window = settings.read(
      "accounts.validation.window", .duration(.seconds(3600) ... .seconds(86_400)), default: .seconds(20 * 3600),
      "Over how much of a day the validations are spread; what is left of it makes up for outages.")
  }
}
