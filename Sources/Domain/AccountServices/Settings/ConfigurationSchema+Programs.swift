import AccountStore
package import Configuration

extension ConfigurationSchema {
  /// All settings of all programs of the house.
  package static let siwa = ConfigurationSchema(prefix: "SIWA", defaultFile: "/etc/siwa/siwa.yaml")
    .adding("siwa-ingress", IngressConfiguration.self)
    .adding(DataEraserProgram.program, ConsumerConfiguration<DataEraserProgram>.self)
    .adding(EmailRelayProgram.program, ConsumerConfiguration<EmailRelayProgram>.self)
    .adding(TokenRevokerProgram.program, ConsumerConfiguration<TokenRevokerProgram>.self)
    .adding(AccountsCommand.program, AccountsConfiguration.self)
    .adding(AuditLogCommand.program, AuditLogConfiguration.self)
    .adding("siwa store", StoreSettings.self)
    .adding("siwa audit", AuditSettings.self)
    .adding("siwa migrate", AppleMigrationSettings.self)
}
