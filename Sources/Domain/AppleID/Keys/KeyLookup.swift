/// What became of the question for a key that was not in the set.
package enum KeyLookup: Sendable {
  /// Apple has it now: this is the set that holds it.
  case found(AppleKeySet)
  /// Apple does not have it: a fetch that began after somebody asked for this very key came back without it.
  case absent
  /// Nobody can say: Apple cannot be reached, or was asked too short a time ago to be asked again. Asking again makes
  /// sense later. Or Apple has it for something else than what we verify.
  case unavailable
}
