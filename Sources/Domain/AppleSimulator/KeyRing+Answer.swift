import Cryptography

extension KeyRing {
  /// The status, media type and body with which the keys endpoint answers; nil for silence.
  func answer(_ answer: KeysAnswer, shift: Int) throws(CryptographyError) -> (status: Int, type: String, body: String)?
  {
    let page = "<html><head><title>503 Service Temporarily Unavailable</title></head><body>Apple</body></html>\n"
    var set = try jwks(shift: shift)
    switch answer {
    case .keys, .cutOff, .otherType, .drip: break
    case .keyGone: set.removeFirst()
    case .otherKey: set[0]["n"] = quoted(Base64URL.encode(try forger.modulus))
    case .garbage: return (200, "application/json", "}{\u{0}\u{1b}[2J\u{7f}\"keys\":[\u{fffd}")
    case .silence: return nil
    case .unavailable: return (503, "text/html", page)
    case .html: return (200, "text/html", page)
    case .redirect: return (302, "text/html", "")
    case .none: set = []
    case .tenMegabytes: set[0]["x"] = quoted(String(repeating: "A", count: 10_000_000))
    case .kidTwice: set.append(set[0])
    case .shortKey: set[0]["n"] = quoted(Base64URL.encode([UInt8](try keys[0].privateKey.modulus.prefix(128))))
    case .smallExponent: set[0]["e"] = quoted("Aw")
    case .foreignKeys: set = try foreign() + set
    case .malformedKey: set[0]["n"] = quoted("=====")
    }
    var body = #"{"keys":[\#(set.map(\.json).joined(separator: ","))]}"#
    if answer == .cutOff { body.removeLast(20) }
    return (200, answer == .otherType ? "text/plain" : "application/json;charset=ISO-8859-1", body)
  }
}

extension KeyRing {
  /// A key on a curve, one for encryption and one for another algorithm; the first has not even a `kid`.
  private func foreign() throws(CryptographyError) -> [Members] {
    var curve = Members([:])
    for (name, text) in [("kty", "EC"), ("use", "sig"), ("alg", "ES256"), ("crv", "P-256")] {
      curve[name] = quoted(text)
    }
    for name in ["x", "y"] { curve[name] = quoted(Base64URL.encode([UInt8](try forger.modulus.prefix(32)))) }
    var others: [Members] = []
    for (kid, use, algorithm) in [("encryptr", "enc", "RSA-OAEP-256"), ("pss00001", "sig", "PS256")] {
      var key = try SigningKey(kid: kid, key: forger).jwk()
      key["use"] = quoted(use)
      key["alg"] = quoted(algorithm)
      others.append(key)
    }
    return [curve] + others
  }
}
