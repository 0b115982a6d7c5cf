import AccountEvents
import AccountServices

// What the shop's pages are made of.
extension ShopPage {
  /// What siwa-accounts says when it is asked for a page; nil where it does not answer.
  struct Knowledge {
    var account: AccountsClient.Account?
    var deletion: AccountsClient.Deletion?
    var isAnswering = true
  }

  /// For whoever is not signed in.
  static func front(_ notice: Markup? = nil) -> Markup {
    """
    \(notice.map { "<p class=\"notice\">\($0)</p>" } ?? "" as Markup)
    <p>Books and lamps, for people with an Apple Account.</p>
    \(button)
    """
  }

  private static let button: Markup = "<p><a class=\"apple\" href=\"/sign-in\">Sign in with Apple</a></p>"

  /// For who has signed in, as long as the visit lasts. `customer` is what the shop's own database has.
  static func visit(
    _ visit: Visit, _ customer: Customers.Customer?, _ known: Knowledge, appleAccount: String
  ) -> Markup {
    let silence: Markup =
      known.isAnswering ? "" : "<p class=\"notice\">siwa-accounts does not answer at the moment.</p>"
    return """
      \(silence)\(top(visit, customer, known, appleAccount: appleAccount))
      \(known.deletion.map(steps) ?? "")
      \(news(visit.news))
      """
  }

  private static func top(
    _ visit: Visit, _ customer: Customers.Customer?, _ known: Knowledge, appleAccount: String
  ) -> Markup {
    switch visit.state {
    case .open:
      """
      \(facts(visit, customer, known))
      <p>\(action("/sign-out", "Sign out", visit))\(action("/delete", "Delete my account", visit, isDangerous: true))</p>
      <p>At Apple you can turn off forwarding, stop using your Apple Account here, or delete it:
      <a href="\(appleAccount)" target="_blank" rel="noopener">your Apple Account</a>.</p>
      """
    case .leaving where known.deletion?.state == "superseded":
      "<p class=\"notice\">You have signed in again meanwhile, so your account is not deleted.</p>\(button)"
    case .leaving: "<p class=\"notice\">Your account is being deleted.</p>\(facts(visit, customer, known))"
    case .ended:
      """
      <p class="notice">Signed out: you have stopped using your Apple Account here. What you bought stays in the shop until
      you have it deleted.</p>\(button)
      """
    case .gone: "<p class=\"notice\">Signed out: this account no longer exists.</p>\(button)"
    }
  }

  private static func facts(_ visit: Visit, _ customer: Customers.Customer?, _ known: Knowledge) -> Markup {
    let email = customer?.email ?? "none"
    let relayed: Markup = customer?.isRelayed == true ? " (Hide My Email)" : ""
    let mail: Markup =
      switch known.account?.relay {
      case "enabled": "forwarded to you"
      case "disabled": "not forwarded: the shop sends you none"
      case "unknown": "nothing is known yet: the shop sends you none"
      default: "the shop sends you none"
      }
    return """
      <table>
      <tr><th>Account</th><td><code>\(visit.account)</code></td></tr>
      <tr><th>E-mail</th><td>\(email)\(relayed)</td></tr>
      <tr><th>Mail</th><td>\(mail)</td></tr>
      <tr><th>You bought</th><td>\(customer?.purchases.joined(separator: ", ") ?? "nothing")</td></tr>
      </table>
      """
  }

  private static func action(_ path: String, _ words: String, _ visit: Visit, isDangerous: Bool = false) -> Markup {
    """
    <form method="post" action="\(path)"><input type="hidden" name="token" value="\(visit.formToken)">\
    <button id="\(String(path.dropFirst()))"\(isDangerous ? " class=\"danger\"" : "" as Markup)>\(words)</button></form>
    """
  }

  private static func steps(_ deletion: AccountsClient.Deletion) -> Markup {
    let list = deletion.steps.map { step -> Markup in
      "<li>\(step.name): <strong>\(step.state)</strong> \(step.at.map { time($0) } ?? "")</li>"
    }
    let byHand: Markup? = deletion.endByHand.map {
      "<p class=\"notice\">\($0.words) <a href=\"\($0.url)\" rel=\"noopener\">\($0.url)</a></p>"
    }
    let proof: Markup? = deletion.proof.map { "<p>The shop can prove it: <code>\($0)</code></p>" }
    return """
      <h2>Deletion: \(deletion.state)</h2>
      <ol id="steps">\(list)</ol>\(byHand ?? "")\(proof ?? "")
      """
  }

  private static func news(_ items: [ShopNews.Item]) -> Markup {
    // Each topic is read by itself.
    let list = items.sorted { $0.at < $1.at }.map { item -> Markup in
      let cause: Markup = item.cause.map { ", after \($0)" } ?? ""
      return """
        <li class="\(item.cause == nil ? "event" : "outcome")">\(time(item.at.description)) \
        <strong>\(item.name)</strong> by \(item.source)\(cause): \(item.words)</li>
        """
    }
    return """
      <h2>What happened to your account</h2>
      \(list.isEmpty ? "<p>Nothing yet. What siwa says on its topics appears here.</p>" : "" as Markup)
      <ol id="news">\(list)</ol>
      """
  }

  /// The time of the day of a moment in RFC 3339's form, in UTC.
  private static func time(_ moment: String) -> Markup {
    let clock = moment.split(separator: "T").last.map { String($0.prefix(12)) } ?? moment
    return "<time datetime=\"\(moment)\">\(clock)</time>"
  }
}
