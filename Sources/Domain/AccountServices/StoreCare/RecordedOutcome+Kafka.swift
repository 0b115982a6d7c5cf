package import AccountEvents
package import AccountStore

extension RecordedOutcome {
  /// What an outcome on its topic says of the store. Only what a consumer of ours says of its own part counts.
  package init?(_ outcome: AccountOutcome) {
    guard let consumer = ConsumerName(outcome.consumer) else { return nil }
    self.init(
      account: outcome.account, consumer: consumer, event: outcome.cause.id, at: outcome.cause.occurredAt,
      ending: Ending(outcome, of: consumer))
  }
}

extension RecordedOutcome.Ending {
  fileprivate init?(_ outcome: AccountOutcome, of consumer: ConsumerName) {
    let isConsent = [AccountEvent.Kind.consentRevoked, .credentialInvalid].map(\.name).contains(outcome.cause.type)
    let isDeletion = [AccountEvent.Kind.accountDelete, .accountDeletionRequested].map(\.name)
      .contains(outcome.cause.type)
    switch outcome.name {
    case .accountErased where consumer == .dataEraser:
      // A withdrawn consent erases what the team's policy names, which need not be what the store keeps.
      let isStoreErased = outcome.targets.contains {
        $0.name == ErasureSettings.accountStore && $0.state == ErasureStep.State.erased.rawValue
      }
      guard isDeletion || isStoreErased else { return nil }
      self = .erased(isFinal: isDeletion)
    case .relayChanged where consumer == .emailRelay:
      self = isConsent || isDeletion ? .mailForgotten(isFinal: isDeletion) : .mailChanged
    case .tokensRevoked, .revocationUnproven, .noToken:
      // Which apps a withdrawn consent was of, and so which tokens it ended, the outcome does not say.
      guard consumer == .tokenRevoker, isDeletion else { return nil }
      self = .tokensEnded
    case .accountErased, .relayChanged, .accountTransferred, .sessionsEnded, .noEffect: return nil
    }
  }
}
