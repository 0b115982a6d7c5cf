import JSON

extension GrantedTokens {
  /// The longest answer that is read. Apple's have 2 kilobytes.
  static let maximumSize = 65_536
  private static let limits = JSONLimits(bytes: maximumSize, depth: 8, members: 32)

  /// Reads the body of an answer of the token endpoint. An access token and its lifetime must be there.
  init(reading body: [UInt8]) throws(AppleTokenError) {
    var access: String?, refresh: String?, identity: String?, type: String?, seconds: Int64?
    do throws(JSONError) {
      try unsafe JSONReader.read(body.span.bytes, Self.limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          switch name {
          case "access_token": access = try value.readString()
          case "refresh_token": refresh = try value.readString()
          case "id_token": identity = try value.readString()
          case "token_type": type = try value.readString()
          case "expires_in": seconds = try value.readInteger()
          default: break
          }
        }
      }
    } catch {
      throw AppleTokenError(.malformedAnswer, "the tokens are \(error)")
    }
    // The type goes without saying in some answers, and its case does not count (RFC 6749 §7.1).
    guard type == nil || type?.lowercased() == "bearer" else {
      throw AppleTokenError(.malformedAnswer, "tokens of another type than Bearer")
    }
    guard let accessToken = access.flatMap(AccessToken.init) else {
      throw AppleTokenError(.malformedAnswer, "no access token")
    }
    guard let seconds, 1...31_536_000 ~= seconds else {
      throw AppleTokenError(.malformedAnswer, "no lifetime of the access token")
    }
    (self.accessToken, lifetime) = (accessToken, .seconds(seconds))
    refreshToken = refresh.flatMap(RefreshToken.init)
    identityToken = identity.flatMap(UnverifiedIdentityToken.init)
    guard (refreshToken == nil) == (refresh == nil), (identityToken == nil) == (identity == nil) else {
      throw AppleTokenError(.malformedAnswer, "a token that cannot be one")
    }
  }
}
