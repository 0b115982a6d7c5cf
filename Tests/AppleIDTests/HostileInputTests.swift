import AccountEvents
import AppleID
import Cryptography
import JSON
import TestSupport
import Testing

/// Whatever arrives, the verifier gives a verdict; and nothing is believed that Apple did not sign.
@Suite struct HostileInputTests {
  /// Bodies cut, doubled and overwritten at random. What is still believed holds the very JWS that was signed.
  @Test func noMutationOfABodyTrapsOrIsBelieved() throws {
    var random = SeededRandom()
    let jws = [
      Forge.jws(), Forge.jws(claims: Forge.claims(["events": [Forge.event(), .string(Forge.text(Forge.event()))]])),
    ]
    for round in SeededRandom.rounds(5000) {
      let signed = jws[round % jws.count]
      let body = random.mutation(of: Forge.body(signed), characters: #"{}[]":,.\/ue0123456789ABCabc-_= "#)
      if let notification = Forge.verify(body).notification {
        #expect(notification.jws == Array(signed.utf8), "seed \(random.seed), round \(round)")
      }
    }
  }

  /// The same inside the encoding, so that header and claims of every shape reach their readers; some are signed anew,
  /// so that the claims are really read.
  @Test func noMutationOfHeaderOrClaimsTrapsOrIsBelieved() throws {
    var random = SeededRandom()
    let header = Forge.header.bytes
    let claims = [
      Forge.claims(["aud": ["com.example.app", "x"], "events": [Forge.event(), .string(Forge.text(Forge.event()))]])
        .bytes,
      Forge.claims(["events": .string(Forge.text([Forge.event(["type": "email-enabled", "email": "a@b"])]))]).bytes,
    ]
    let signature = try #require(Forge.jws().split(separator: ".").last)
    let characters = #"{}[]":,\/u0123456789-.eE trufalsn"# + "\u{0}\u{7f}é"
    for round in SeededRandom.rounds(4000) {
      let signs = round % 8 == 0
      let mutatedHeader = signs ? header : random.mutation(of: header, characters: characters)
      let mutatedClaims = random.mutation(of: claims[round % claims.count], characters: characters)
      let signed = Base64URL.encode(mutatedHeader) + "." + Base64URL.encode(mutatedClaims)
      let own = signs ? Base64URL.encode(try Forge.key.signRS256(Array(signed.utf8))) : String(signature)
      let verdict = Forge.verify(Forge.body("\(signed).\(own)"))
      if !signs { #expect(verdict.notification == nil, "seed \(random.seed), round \(round)") }
      if let notification = verdict.notification {
        #expect(!notification.events.isEmpty, "seed \(random.seed), round \(round)")
        #expect(notification.team == Forge.team && notification.audience == Forge.app)
      }
    }
  }

  @Test func noMutationOfAKeySetTrapsOrLetsABadKeyIn() throws {
    var random = SeededRandom()
    let text = try Authentic.keys()
    for round in SeededRandom.rounds(5000) {
      let mutated = random.mutation(of: text, characters: #"{}[]":,\/u0123456789ABCabc-_= "#)
      do {
        let keys = try unsafe AppleKeySet(reading: mutated.span.bytes)
        #expect(!keys.keyIDs.isEmpty && keys.keyIDs.count == Set(keys.keyIDs).count)
        #expect(keys.keyIDs.allSatisfy { (keys[$0]?.bitCount ?? 0) >= 2048 }, "seed \(random.seed), round \(round)")
      } catch {
        #expect(!error.description.isEmpty)
      }
    }
  }

  /// Shapes that are costly where something is unbounded.
  @Test func theLargestBodiesOfEveryShapeGetAVerdict() {
    let room = UnverifiedNotification.maximumBodySize - 40
    let deep = String(repeating: "[", count: room / 2) + String(repeating: "]", count: room / 2)
    let members = (0..<room / 10).map { "\"a\($0)\":1" }.joined(separator: ",")
    let escapes = String(repeating: #"\u0041"#, count: room / 6)
    #expect(Forge.verify(Array("{\"a\":\(deep)}".utf8)).refusal == .malformedBody)
    #expect(Forge.verify(Array("{\(members)}".utf8)).refusal == .malformedBody)
    #expect(Forge.verify(Array("{\"payload\":\"\(escapes)\"}".utf8)).refusal == .notThreeParts)
    let dots = String(repeating: ".", count: room)
    #expect(Forge.verify(Array("{\"payload\":\"\(dots)\"}".utf8)).refusal == .notThreeParts)
    let long = String(repeating: "A", count: room / 4 * 4 - 8)
    #expect(Forge.verify(Array("{\"payload\":\"\(long).AAAA.AAAA\"}".utf8)).refusal == .malformedHeader)
  }
}
