package import AccountEvents
import JSON

/// What an effect says: its outcome's members, as far as an auditor asks for them.
///
/// It is read leniently: what a later version calls an outcome or a reason is an effect, too.
package struct EffectFacts: Sendable, Hashable {
  /// Which consumer did it.
  package let consumer: String
  /// What was done: `account-erased`.
  package let name: String
  /// Why nothing was done, where that is what is said.
  package let reason: String?
  /// When it was done; nil where it does not say.
  package let doneAt: Timestamp?
  /// The account's keyed hash; nil where it does not say.
  package let account: AccountHash?
  /// What became of each target of an erasure.
  package let targets: [Target]

  /// What became of a target.
  package struct Target: Sendable, Hashable {
    /// The target.
    package let name: String
    /// `erased`, `retained`, `discarded`.
    package let state: String
    /// How many rows or records there were, were erased, and were found afterwards; nil where the target cannot count.
    package let before, affected, after: Int64?
    /// Of a target that an operator discarded: who, and why.
    package let note: String?
  }

  /// What an effect says.
  package init(_ effect: AuditEntry.Effect) {
    let outcome: JSONValue
    do throws(JSONError) {
      outcome = try JSONValue(decoding: effect.outcome, JSONLimits(bytes: 1 << 20, depth: 17, members: 8192))
    } catch {
      preconditionFailure("it was read as an entry's member")
    }
    consumer = outcome["consumer"]?.text ?? ""
    name = outcome["outcome"]?.text ?? ""
    reason = outcome["reason"]?.text
    doneAt = outcome["done_at"]?.integer.flatMap { Timestamp(milliseconds: $0) }
    account = outcome["account"]?.text.flatMap { AccountHash($0) }
    guard case .array(let targets)? = outcome["targets"] else {
      self.targets = []
      return
    }
    self.targets = targets.map { target in
      Target(
        name: target["name"]?.text ?? "", state: target["state"]?.text ?? "", before: target["before"]?.integer,
        affected: target["affected"]?.integer, after: target["after"]?.integer, note: target["note"]?.text)
    }
  }

  /// The outcome, with the reason of one that is none: `no-effect: echo`.
  package var outcome: String { name + (reason.map { ": \($0)" } ?? "") }
}
