import AppleID
import AppleSimulator
import EventLoop
import Foundation
import HTTPClient
import JSON
import TestSupport
import Testing

/// Each reason of refusal as Apple, or whoever it was, is told it: RFC 8935, section 2.3.
@Loop @Suite struct RefusalAnswerTests {
  /// What meets a reason: a fault of the simulator's, or something that it cannot make.
  enum Provocation: Sendable {
    case fault(Fault)
    case header(String)
    case audiences([String])
  }

  nonisolated static let provocations: [Refusal: Provocation] = [
    .malformedBody: .fault(.bodyForm), .payloadMissing: .fault(.bodyWithoutPayload),
    .notThreeParts: .fault(.twoParts), .malformedEncoding: .fault(.paddedBase64),
    .malformedHeader: .header("{"), .criticalHeader: .fault(.criticalHeader), .keyInHeader: .fault(.keyInHeader),
    .wrongAlgorithm: .fault(.algorithmHS256), .wrongType: .header(#"{"kid":"k","alg":"RS256","typ":"at+jwt"}"#),
    .malformedKeyID: .header(#"{"kid":"a b","alg":"RS256"}"#), .unknownKey: .fault(.unknownKey),
    .wrongSignature: .fault(.forgedSignature), .malformedClaims: .fault(.withoutExpiry),
    .identityToken: .fault(.identityToken), .notANotification: .fault(.withoutEvents),
    .wrongIssuer: .fault(.wrongIssuer), .unknownAudience: .fault(.wrongAudience),
    .severalTeams: .audiences([IngressRig.app, IngressRig.otherApp]),
  ]

  /// A body that is too large is not among them: its answer is 413.
  nonisolated static let reasons = Refusal.allCases.filter { $0 != .bodyTooLarge }

  @Test(arguments: reasons)
  func isToldWithItsCodeAndASentence(reason: Refusal) async throws {
    try await IngressRig.run { rig in
      let body: [UInt8] =
        switch try #require(Self.provocations[reason]) {
        case .fault(let fault): try rig.sign(.emailDisabled, fault).body
        case .header(let header): try rig.body(header: header, claims: rig.claims(events: "[]"))
        case .audiences(let names):
          try rig.body(claims: rig.claims(audience: .array(names.map { .string($0) }), events: "[]"))
        }
      let response = try await rig.post(body)
      #expect(response.status == 400)
      #expect(response.header("Content-Type") == "application/json")
      #expect(response.header("Content-Language") == "en")
      let answer = try JSONDecoder().decode([String: String].self, from: Data(response.body))
      #expect(answer == ["err": reason.code.rawValue, "description": reason.description])

      #expect(rig.log.records.isEmpty)
      #expect(try await rig.metric("siwa_ingress_notifications_refused_total{reason=\"\(reason.rawValue)\"}") == 1)
      let lines = rig.lines.lines.filter { $0.contains("notification refused") }
      #expect(lines.count == 1 && lines[0].contains("\"reason\":\"\(reason.rawValue)\",\"http.peer\":\"127.0.0.1\""))
      // Whoever forgot an app has to learn which.
      let isNamed = lines.first?.contains("\"audience\":\"com.example.somebody-else\"")
      #expect(isNamed == (reason == .unknownAudience))
    }
  }
}
