import HTTPServer

/// What a person fills in to sign in.
struct SignInForm {
  /// What the person does.
  enum Decision: String { case proceed = "continue", cancel }

  /// The person, with the address that the app gets if it asks for one.
  let person: Person
  /// What the person is called; both may be empty.
  let firstName, lastName: String

  /// Reads the fields; nil where the address of the Apple Account is none, or a name is too long or has control characters.
  init?(_ fields: FormFields, for request: AuthorizationRequest) {
    guard let account = fields["account"].flatMap(Person.init(account:)) else { return nil }
    (firstName, lastName) = (fields["first_name"] ?? "", fields["last_name"] ?? "")
    for name in [firstName, lastName] {
      guard name.utf8.count <= 200, !name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
      else { return nil }
    }
    var person = account
    person.tellsAddress = request.wantsAddress
    if fields["address"] != "hide", let own = fields["account"] { (person.address, person.hidesAddress) = (own, false) }
    self.person = person
  }
}

extension Person {
  /// Whose Apple Account has this address, with an address at the private relay; nil for what is no address.
  init?(account: String) {
    let parts = account.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    guard 3...254 ~= account.utf8.count, parts.count == 2, parts.allSatisfy({ !$0.isEmpty }),
      account.utf8.allSatisfy({ 0x21...0x7e ~= $0 && !#""<>(),:;\[]"#.utf8.contains($0) })
    else { return nil }
    self.init(named: account.lowercased())
  }
}
